"""Templates, compiled once; every text that comes from data or from a reader is escaped by them."""

import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from sfumato import __version__
from sfumato.serve.page.assets import Assets
from sfumato.serve.settings import Settings

HTML = "text/html; charset=utf-8"
_CODE = re.compile(r"`([^`]+)`")


def make_templates(assets: Assets, settings: Settings) -> Environment:
    """The templates of the page, with what all of them say."""
    templates = Environment(
        loader=PackageLoader("sfumato.serve.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.globals |= {"asset": assets.path, "settings": settings, "version": __version__}
    templates.filters |= {"prose": prose, "count": count}
    return templates


def prose(text: str) -> Markup:
    """A paragraph of a statement: what stands between backticks becomes code.

    >>> prose("`low` & `high`")
    Markup('<code>low</code> &amp; <code>high</code>')
    """
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 — escaped before


def count(number: Any, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> count(1, "row"), count(1200, "row"), count(2, "match", "matches")
    ('1 row', '1,200 rows', '2 matches')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
