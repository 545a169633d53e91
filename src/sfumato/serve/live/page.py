"""The page of ad-hoc tables: a form without scripts; what costs something needs a second button."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import Response

from sfumato.serve.context import ServerContext
from sfumato.serve.core.access import require
from sfumato.serve.core.audit import AuditedQuery
from sfumato.serve.core.errors import RefusedError, refusing
from sfumato.serve.core.model import ServedTable
from sfumato.serve.core.users import Role, User
from sfumato.serve.live.question import LiveQuestion, in_words, shown_price
from sfumato.serve.live.queue import LiveQueue, quota_of
from sfumato.serve.page.assets import HTML, Assets, make_templates
from sfumato.serve.page.question import ALL, ReaderQuestion, Variable
from sfumato.serve.page.sheet import Sheet, sheet_of
from sfumato.serve.page.site import site
from sfumato.serve.page.view import view_of

_FIELDS = 5_000
_NUMBERS = ("epsilon", "alpha", "delta")
Analyst = Annotated[User, require(Role.analyst, page=True)]


def router(context: ServerContext, queue: LiveQueue) -> APIRouter:
    """The page; it is for people, so the OpenAPI document leaves it out."""
    api = APIRouter(prefix="/live", include_in_schema=False)
    template = make_templates(Assets.read(), context.settings, "sfumato.serve.live").get_template("live.html")
    live = queue.live

    async def render_page(request: Request, user: User, sent: Sequence[tuple[str, str]], *, ask: bool) -> Response:
        chosen = fields(sent)
        given: dict[str, Any] = dict.fromkeys(("price", "refusal", "table", "sheet", "error"))

        def work() -> None:
            if chosen["by"]:
                try:
                    with refusing():
                        given.update(answer_or_price(read(chosen), request, user, ask=ask))
                except RefusedError as error:
                    given["error"] = error
            given["config"] = queue.config(user)

        await queue.work(work, client=context.client(request.scope))
        about = {"user": user, "site": site(context, user), "chosen": chosen, "sent": _kept(sent)}
        status = 200 if given["error"] is None else given["error"].status
        return Response(template.render(about | given), status_code=status, media_type=HTML)

    def answer_or_price(question: LiveQuestion, request: Request, user: User, *, ask: bool) -> dict[str, Any]:
        """The answer, or the price where it costs something and nobody said to spend it."""
        statistic = question.plan(live)
        AuditedQuery(table=statistic.table.name, asked=in_words(statistic), cells=statistic.cells).attach(request.scope)
        price = None if ask else live.price(statistic, analyst=quota_of(user))
        if price is not None:
            return {"price": shown_price(statistic, price), "refusal": price.refusal}
        table = queue.answer(statistic, user)
        return {"table": table, "sheet": whole(table)}

    @api.get("")
    async def form(request: Request, user: Analyst) -> Response:
        """The form, with the answer where it costs nothing, and with the price where it costs something."""
        return await render_page(request, user, request.query_params.multi_items(), ask=False)

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
        return await render_page(request, user, sent, ask=True)

    return api


def whole(table: ServedTable) -> Sheet:
    """All of an answer with every figure, its attributes in the rows."""
    variables = (Variable(dimension=dimension, place="rows", wanted=(ALL,)) for dimension in table.dimensions)
    question = ReaderQuestion(table=table, variables=tuple(variables), metrics=table.contents.codes)
    return sheet_of(view_of(question, question.selection()), question)


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
