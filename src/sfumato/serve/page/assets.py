"""Templates, styles and modules of the page, compiled and read once."""

import re
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b
from importlib.resources import files
from pathlib import PurePath

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from sfumato import __version__
from sfumato.serve.context import Rendered
from sfumato.serve.core.access import Settings
from sfumato.serve.page.question import spell_code

_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, kw_only=True)
class Assets:
    """Files by name, and the version that their addresses have: it changes when one of them does."""

    version: str
    files: dict[str, Rendered]

    @classmethod
    def read(cls) -> "Assets":
        """Read the files of the package."""
        folder = files("sfumato.serve.page") / "static"
        found = {file.name: file.read_bytes() for file in folder.iterdir() if PurePath(file.name).suffix[1:] in _TYPES}
        version = blake2b(digest_size=6)
        for name in sorted(found):
            version.update(name.encode() + b"\0" + found[name])
        return cls(version=version.hexdigest(), files={name: _kept(name, text) for name, text in found.items()})

    def path(self, name: str) -> str:
        """Where a file is found."""
        return f"/static/{self.version}/{name}"


def _kept(name: str, content: bytes) -> Rendered:
    made = Rendered.of(content, media_type=_TYPES[PurePath(name).suffix[1:]])
    # Another version has another address.
    return Rendered(body=content, headers={**made.headers, "Cache-Control": "public, max-age=31536000, immutable"})


HTML = "text/html; charset=utf-8"
_CODE = re.compile(r"`([^`]+)`")


def make_templates(assets: Assets, settings: Settings, *packages: str) -> Environment:
    """The templates of the page and of other packages beside it, with what all of them say; they escape every text."""
    templates = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in ("sfumato.serve.page", *packages)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.globals |= {"asset": assets.path, "settings": settings, "version": __version__}
    templates.filters |= {"prose": prose, "figure": figure, "sentence": sentence, "spelled": spell_code}
    return templates


def prose(text: str) -> Markup:
    """A paragraph of a statement: what stands between backticks becomes code.

    >>> prose("`low` & `high`")
    Markup('<code>low</code> &amp; <code>high</code>')
    """
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 — escaped before


def figure(number: float, digits: int = 3) -> str:
    """A number as people write it: so many digits that count, never an exponent.

    >>> figure(129.6), figure(1296.4, 2), figure(0.25), figure(1e-6), figure(123_456.7, 6)
    ('130', '1,300', '0.25', '0.000001', '123,457')
    """
    rounded = Decimal(f"{number:.{digits}g}")
    text = f"{rounded:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def sentence(text: str) -> str:
    """Words that begin with a capital and end with a point, whatever they began and ended with.

    >>> sentence("choose another"), sentence("ε = 1."), sentence("")
    ('Choose another.', 'ε = 1.', '')
    """
    first = text[:1].upper() if text[:1].isascii() else text[:1]
    return f"{first}{text[1:].rstrip('.')}." if text else ""
