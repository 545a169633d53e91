"""sfumato turns confidential employer-employee data into published, protected tables.

>>> import sfumato
>>> release = sfumato.load("release.toml")  # doctest: +SKIP
>>> sfumato.run(release).bundle  # doctest: +SKIP
"""

from importlib import import_module
from typing import Any

__version__ = "0.2.0.dev0"
__all__ = ["assess", "check", "compare", "load", "open_bundle", "preview", "run", "start"]
_DOORS = {
    "assess": "sfumato.report.assess",
    "check": "sfumato.checking",
    "compare": "sfumato.report.compare",
    "load": "sfumato.release",
    "open_bundle": "sfumato.bundle.read",
    "preview": "sfumato.report.preview",
    "run": "sfumato.running",
    "start": "sfumato.starting.start",
}


def __getattr__(name: str) -> Any:
    """One of the public doors."""
    if name not in _DOORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_DOORS[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
