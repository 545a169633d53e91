from sfumato.bundle.read import open_bundle as open_bundle
from sfumato.checking import check as check
from sfumato.release import load as load
from sfumato.report.assess import assess as assess
from sfumato.report.compare import compare as compare
from sfumato.report.preview import preview as preview
from sfumato.running import run as run
from sfumato.starting.start import start as start

__version__: str
__all__ = ["assess", "check", "compare", "load", "open_bundle", "preview", "run", "start"]
