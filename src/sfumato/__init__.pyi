from sfumato.bundle.read import open_bundle as open_bundle
from sfumato.checking import check as check
from sfumato.release import load as load
from sfumato.report.assess import assess as assess
from sfumato.running import run as run

__version__: str
__all__ = ["assess", "check", "load", "open_bundle", "run"]
