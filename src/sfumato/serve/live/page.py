"""The pages of ad-hoc tables: a form without scripts that says what to expect; what costs needs a second button."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Annotated, Any, NamedTuple, cast
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Request
from jinja2 import Environment
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from sfumato.live import ChargedSession
from sfumato.serve.context import Rendered, ServerContext
from sfumato.serve.core.access import require
from sfumato.serve.core.audit import AuditedQuery
from sfumato.serve.core.errors import RefusedError, refusing, said, shortened
from sfumato.serve.core.model import ServedTable
from sfumato.serve.core.users import Role, User
from sfumato.serve.live.advice import SIZES, advise, best_method, descriptions
from sfumato.serve.live.question import LiveQuestion, in_words, shown_price
from sfumato.serve.live.queue import LiveQueue, quota_of
from sfumato.serve.page.assets import HTML, Assets, make_templates
from sfumato.serve.page.language import language_of
from sfumato.serve.page.question import ReaderQuestion
from sfumato.serve.page.reading import read as read_layout
from sfumato.serve.page.routes import OF_FORMAT, drawn_chart, written_data
from sfumato.serve.page.site import LIVE, site
from sfumato.serve.page.table_page import Address, TablePage

_FIELDS = 5_000
_SYMBOLS = {"epsilon": "ε", "alpha": "α", "delta": "δ"}
_NUMBERS = tuple(_SYMBOLS)
_OWN = ("by", "what", "margins", "method", *_NUMBERS)
"""What belongs to the question; all other fields of an address are of the layout of its answer."""
_TABLE = f"{LIVE}/table"
Analyst = Annotated[User, require(Role.analyst, page=True)]
Pairs = Sequence[tuple[str, str]]


class Asked(NamedTuple):
    """The parts of an address of an answer."""

    question: list[tuple[str, str]]
    layout: list[tuple[str, str]]


def router(context: ServerContext, queue: LiveQueue) -> APIRouter:
    """The pages; they are for people, so the OpenAPI document leaves them out."""
    api = APIRouter(prefix=LIVE, include_in_schema=False)
    pages = LivePages(context=context, queue=queue)
    for path, method, handler in (
        ("", "GET", pages.form),
        ("", "POST", pages.ask),
        ("/table", "GET", pages.table),
        ("/table/data", "GET", pages.data),
        ("/table/chart.svg", "GET", pages.chart),
    ):
        api.add_api_route(path, handler, methods=[method], response_class=Response)
    return api


@dataclass(frozen=True, kw_only=True, eq=False)
class LivePages:
    """What the addresses of ad-hoc tables answer with."""

    context: ServerContext
    queue: LiveQueue

    @cached_property
    def _templates(self) -> Environment:
        return make_templates(Assets.read(), self.context.settings, "sfumato.serve.live")

    async def _form_page(
        self, request: Request, user: User, sent: Pairs, error: RefusedError | None = None
    ) -> Response:
        """The form, with what a question would cost and what it would give."""
        chosen = fields(sent)
        given: dict[str, Any] = {"price": None, "refusal": None, "advice": None, "error": error, "sizes": SIZES}

        def work() -> None:
            if chosen["by"] and error is None and self.queue.live.most is not None:
                try:
                    with refusing():
                        given.update(self._priced(chosen, request, user))
                except RefusedError as refused:
                    given["error"] = refused
            given["config"] = self.queue.config(user)

        await self.queue.work(work, client=self.context.client(request.scope))
        about = {"user": user, "site": site(self.context, user, request), "chosen": chosen, "sent": kept(chosen)}
        given["described"] = {} if self.queue.live.most is None else descriptions()
        status = 200 if given["error"] is None else given["error"].status
        return Response(
            self._templates.get_template("live.html").render(about | given), status_code=status, media_type=HTML
        )

    def _priced(self, chosen: dict[str, Any], request: Request, user: User) -> dict[str, Any]:
        """What a question would cost, and what to expect of its answer; the best method where none is named."""
        charged = cast(ChargedSession, self.queue.live)
        if not chosen["method"] and chosen["epsilon"] and not isinstance(_number(chosen["epsilon"]), str):
            chosen["method"] = best_method(charged, exact(chosen)) or ""
            chosen["chose"] = bool(chosen["method"])
        statistic = read(chosen).plan(self.queue.live)
        AuditedQuery(table=statistic.table.name, asked=in_words(statistic), cells=statistic.cells).attach(request.scope)
        price = self.queue.live.price(statistic, analyst=quota_of(user))
        if price is None:
            return {}
        config = self.queue.config(user)
        budget = config.budget
        advice = None
        if budget is not None and price.refusal is None:
            advice = advise(
                charged,
                exact(chosen) | {"method": chosen["method"] or None},
                statistic,
                [one for one in self.context.catalogue if sum(map(len, one.dimensions)) < _FIELDS],
                epsilons=(budget.least_epsilon, max(min(budget.most_epsilon, budget.left), budget.least_epsilon)),
                wish=_wish(chosen["wish"]),
            )
        return {
            "price": shown_price(statistic, price),
            "refusal": price.refusal,
            "advice": advice,
            "words": statistic.method.description,
        }

    def _answer(self, sent: Pairs, request: Request, user: User, *, spend: bool) -> ServedTable | None:
        """The answer; None where it costs something that nobody said to spend."""
        statistic = read(fields(sent)).plan(self.queue.live)
        AuditedQuery(table=statistic.table.name, asked=in_words(statistic), cells=statistic.cells).attach(request.scope)
        if not spend:
            price = self.queue.live.price(statistic, analyst=quota_of(user))
            if price is not None and not price.answered:
                return None
        return self.queue.answer(statistic, user)

    async def form(self, request: Request, user: Analyst) -> Response:
        """The form; where questions cost nothing, on to the answer."""
        sent = request.query_params.multi_items()
        if self.queue.live.most is None and fields(sent)["by"]:
            return RedirectResponse(_to(request, self.context, user, kept(fields(sent))), status_code=303)
        return await self._form_page(request, user, sent)

    async def ask(self, request: Request, user: Analyst) -> Response:
        """Spend what the question costs, and lead to its answer."""
        try:
            sent = parse_qsl((await request.body()).decode(), max_num_fields=_FIELDS)
        except ValueError as error:
            raise RefusedError(
                "form", expected="fields of the form", found="something else", do="use the form"
            ) from error
        try:
            await self.queue.work(
                partial(self._answer, sent, request, user, spend=True), client=self.context.client(request.scope)
            )
        except RefusedError as error:
            return await self._form_page(request, user, sent, error)
        return RedirectResponse(_to(request, self.context, user, kept(fields(sent))), status_code=303)

    async def table(self, request: Request, user: Analyst) -> Response:
        """The answer as a page like that of a published table; who has not paid for it is led to its price."""
        asked = parts(request.query_params.multi_items())
        address = Address(
            page=_TABLE,
            data=f"{_TABLE}/data",
            drawing=f"{_TABLE}/chart.svg",
            kept=tuple(asked.question),
            back=LIVE,
        )
        pages = TablePage(context=self.context, templates=self._templates, site=site(self.context, user, request))
        base = self.context.address(request)

        def work() -> Rendered | None:
            found = self._answer(asked.question, request, user, spend=False)
            if found is None:
                return None
            question = _layout(found, asked, request)
            try:
                return pages.write(question, base, address, left=self.queue.config(user).budget)
            except RefusedError as error:
                return pages.refuse(question, error, asked.layout, base, address)

        try:
            with refusing():
                found = await self.queue.work(work, client=self.context.client(request.scope))
        except RefusedError as error:
            return await self._form_page(request, user, asked.question, error)
        if found is None:
            back = site(self.context, user, request).to(LIVE, urlencode(asked.question))
            return RedirectResponse(back, status_code=303)
        return Response(found.body, status_code=found.status, media_type=HTML)

    async def _of_answer(self, request: Request, user: User, work: Any) -> Response:
        """Something made of an answer that was paid for."""
        asked = parts(request.query_params.multi_items())

        def made() -> Rendered:
            found = self._answer(asked.question, request, user, spend=False)
            if found is None:
                raise RefusedError(
                    "ad-hoc table",
                    expected="a question that was asked before",
                    found="a new one, which costs something",
                    do="ask it on the page first",
                    status=403,
                    said=said("This was not asked before, and costs something. Ask it on the page first."),
                )
            return cast(Rendered, work(_layout(found, asked, request)))

        with refusing():
            return (await self.queue.work(made, client=self.context.client(request.scope))).respond(request)

    async def data(self, request: Request, user: Analyst) -> Response:
        """The figures of an answer in a format."""
        return await self._of_answer(
            request, user, lambda question: written_data(self.context, question, dict(request.query_params))
        )

    async def chart(self, request: Request, user: Analyst) -> Response:
        """The chart of an answer."""
        return await self._of_answer(request, user, lambda question: drawn_chart(self.context, question))


def _layout(table: ServedTable, asked: Asked, request: Request) -> ReaderQuestion:
    say = language_of(request)
    return read_layout(table.in_language(say.code), asked.layout, say)


def _to(request: Request, context: ServerContext, user: User, pairs: Pairs) -> str:
    return site(context, user, request).to(_TABLE, urlencode(pairs))


def parts(sent: Pairs) -> Asked:
    """The question of an address, and the layout of its answer."""
    question = [pair for pair in sent if pair[0] in _OWN or pair[0].startswith("where[")]
    others = [pair for pair in sent if pair not in question and pair[0] not in ("lang", *OF_FORMAT)]
    return Asked(question=question, layout=others)


def fields(sent: Pairs) -> dict[str, Any]:
    """The fields of the form: `by` and `where[name]` may come several times."""
    where: dict[str, list[str]] = {}
    by: list[str] = []
    others = dict.fromkeys(("what", "margins", "method", "wish", *_NUMBERS), "")
    for name, text in sent:
        if name == "by":
            by.append(text)
        elif name.startswith("where[") and name.endswith("]"):
            where.setdefault(name[6:-1], []).append(text)
        elif name in others:
            others[name] = _with_point(text.strip()) if name in (*_NUMBERS, "wish") else text.strip()
    return {**others, "by": list(dict.fromkeys(by)), "where": where, "chose": False}


def read(chosen: Mapping[str, Any]) -> LiveQuestion:
    """The question that the form asks."""
    statistic, _, measure = chosen["what"].partition(":")
    asked = {"by": chosen["by"], "where": chosen["where"], "totals": bool(chosen["margins"])}
    asked |= {"statistic": statistic or "count", "measure": measure or None}
    asked |= {name: _number(chosen[name]) for name in _NUMBERS if chosen[name]}
    asked |= {"method": chosen["method"]} if chosen["method"] else {}
    try:
        return LiveQuestion.model_validate(asked)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        number = "a number above 0, such as 0.25" if name in _NUMBERS else first["msg"].removeprefix("Input should be ")
        found = shortened(str(asked.get(name, ""))) or "another text"
        raise RefusedError(
            name,
            expected=number,
            found=found,
            do="correct the form",
            said=said(
                "“{found}” is no number for {symbol}. Write one such as 0.25.", found=found, symbol=_SYMBOLS[name]
            )
            if name in _NUMBERS
            else None,
        ) from None


def exact(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The question as sessions take it, but for the method; what is no number is refused where it is read."""
    numbers = {name: _number(chosen[name]) for name in _NUMBERS if chosen[name]}
    known = {name: Fraction(str(number)) for name, number in numbers.items() if isinstance(number, float)}
    return {"by": tuple(chosen["by"]), "where": chosen["where"], **known}


def _number(text: str) -> float | str:
    """The number that a field has; another text stays one, and is refused as such."""
    try:
        found = float(text)
    except ValueError:
        return text
    return found if abs(found) < float("inf") else text


def _with_point(text: str) -> str:
    """A number as programs write it, where a reader wrote it with a comma: 0,25 but not 1,000."""
    return text.replace(",", ".") if re.fullmatch(r"0?,\d+|\d+,(\d{1,2}|\d{4,})( *%)?", text) else text


def _wish(text: str) -> float | None:
    """The error that is wished, in percent; none where the field has something else."""
    found = _number(text.replace("%", "").strip()) if text else ""
    return found if isinstance(found, float) and found > 0 else None


def kept(chosen: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The question as the fields of an address."""
    pairs = [("by", name) for name in chosen["by"]]
    pairs += [(f"where[{name}]", code) for name, codes in chosen["where"].items() for code in codes]
    return pairs + [(name, chosen[name]) for name in _OWN if name != "by" and chosen[name]]
