"""The page of ad-hoc tables: a form without scripts; what costs something needs a second button."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request
from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup
from pydantic import ValidationError
from starlette.responses import Response

from sfumato.errors import SfumatoError
from sfumato.live import FormalLive
from sfumato.serve.access import require
from sfumato.serve.audit_asked import note
from sfumato.serve.errors import RefusedError
from sfumato.serve.formats.html import table_html
from sfumato.serve.formats.options import Options
from sfumato.serve.live.asked import LiveQuestion, in_words
from sfumato.serve.live.desk import Desk, as_refused
from sfumato.serve.live.priced import priced
from sfumato.serve.live.schemas import live_config
from sfumato.serve.page.assets import Assets
from sfumato.serve.page.writing import HTML, make_templates
from sfumato.serve.selection import everything
from sfumato.serve.served import Served
from sfumato.users import Role, User

MOST_SHOWN = 5_000
"""Cells of an answer that are shown; larger answers are for programs."""
_FIELDS = 5_000
_NUMBERS = ("epsilon", "alpha", "delta")
Analyst = Annotated[User, require(Role.analyst, page=True)]


def templates_of(served: Served, *packages: str) -> Environment:
    """The templates of the page and those of other packages beside them."""
    found = make_templates(Assets.read(), served.settings)
    assert found.loader is not None
    found.loader = ChoiceLoader([found.loader, *map(PackageLoader, packages)])
    return found


def router(served: Served, desk: Desk) -> APIRouter:
    """The page; it is for people, so the OpenAPI document leaves it out."""
    api = APIRouter(prefix="/live", include_in_schema=False)
    template = templates_of(served, "sfumato.serve.live").get_template("live.html")
    live = desk.live

    async def shown(request: Request, user: User, sent: Sequence[tuple[str, str]], *, ask: bool) -> Response:
        chosen = fields(sent)
        given: dict[str, Any] = {"price": None, "table": None, "answer": None, "error": None, "large": False}
        status = 200
        if chosen["by"]:
            try:
                question = read(chosen)
                planned = await desk.work(lambda: question.planned(live))
                note(request.scope, table=planned.table.name, asked=in_words(planned), cells=planned.cells)
                if isinstance(live, FormalLive) and not ask:
                    given["price"] = await desk.work(lambda: priced(live, planned))
                else:
                    table = await desk.table(planned)
                    given["large"] = planned.cells > MOST_SHOWN
                    given["table"] = table
                    if not given["large"]:
                        made = table_html(table.answer(everything(table)), Options())
                        given["answer"] = Markup(made)  # noqa: S704 — it escapes every text itself
            except SfumatoError as error:
                given["error"] = as_refused(error)
                status = given["error"].status
        left = await desk.work(live.left) if isinstance(live, FormalLive) else None
        content = template.render(user=user, config=live_config(live, left), chosen=chosen, sent=_kept(sent), **given)
        return Response(content, status_code=status, media_type=HTML)

    @api.get("")
    async def form(request: Request, user: Analyst) -> Response:
        """The form, with the answer where it costs nothing, and with the price where it costs something."""
        return await shown(request, user, request.query_params.multi_items(), ask=False)

    @api.post("")
    async def ask(request: Request, user: Analyst) -> Response:
        """The answer, charged if it is new."""
        try:
            body = (await request.body()).decode()
            sent = parse_qsl(body, max_num_fields=_FIELDS)
        except ValueError as error:
            raise RefusedError(
                "form", expected="fields of the form", found="something else", do="use the form"
            ) from error
        return await shown(request, user, sent, ask=True)

    return api


def fields(sent: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The fields of the form: `by` and `where[name]` may come several times."""
    where: dict[str, list[str]] = {}
    by: list[str] = []
    others = dict.fromkeys(("what", "totals", "method", *_NUMBERS), "")
    for name, text in sent:
        if name == "by":
            by.append(text)
        elif name.startswith("where[") and name.endswith("]"):
            where.setdefault(name[6:-1], []).append(text)
        elif name in others:
            others[name] = text.strip()
    return {**others, "by": list(dict.fromkeys(by)), "where": where}


def read(chosen: Mapping[str, Any]) -> LiveQuestion:
    """The question that the form asks."""
    statistic, _, measure = chosen["what"].partition(":")
    asked = {"by": chosen["by"], "where": chosen["where"], "totals": bool(chosen["totals"])}
    asked |= {"statistic": statistic or "count", "measure": measure or None}
    asked |= {name: _number(chosen[name]) for name in _NUMBERS if chosen[name]}
    asked |= {"method": chosen["method"]} if chosen["method"] else {}
    try:
        return LiveQuestion.model_validate(asked)
    except ValidationError as error:
        first = error.errors()[0]
        raise RefusedError(
            ".".join(map(str, first["loc"])), expected=first["msg"], found="another text", do="correct the form"
        ) from None


def _number(text: str) -> float | str:
    """The number that a field has; another text stays one, and is refused as such."""
    try:
        return float(text)
    except ValueError:
        return text


def _kept(sent: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The fields again, for the button that asks."""
    return [(name, text) for name, text in sent if name.startswith("where[") or name in ("by", "method", *_NUMBERS)]
