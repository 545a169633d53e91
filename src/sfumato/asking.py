"""From a table of a release to the question that the engine answers."""

from collections.abc import Mapping
from difflib import get_close_matches

from sfumato.cells import Dimension
from sfumato.engine.question import TOTAL, Asked, ContributorQuestion, IndicatorQuestion, PairQuestion, Question
from sfumato.errors import ReleaseError
from sfumato.frame import Codelist, Frame
from sfumato.indicators import CODES, NAME
from sfumato.methods.registry import needs
from sfumato.microdata import Microdata
from sfumato.table import Table


def ask_records(table: Table, data: Microdata, codelists: Mapping[str, Codelist], *, contributors: int) -> Asked:
    """What a table asks of a table of records; `contributors` is how many of the largest units must be known."""
    if not table.of_records:
        raise ReleaseError(
            f"table '{table.name}'",
            expected='a total, a mean or count = "records": the data are records, not jobs',
            found=f"{table.statistic}",
            do='write total = "…", mean = "…" or count = "records"',
        )
    if table.measure is not None and table.measure not in data.measures:
        close = get_close_matches(table.measure, list(data.measures), n=1)
        raise ReleaseError(
            f"table '{table.name}', {table.statistic}",
            expected=f"a measure: {', '.join(data.measures) or 'none is described'}",
            found=f"'{table.measure}'",
            do=f"did you mean '{close[0]}'?" if close else "describe it under [data.measures]",
        )
    codes = {name: codelist.codes for name, codelist in codelists.items()}
    _refuse_unknown_codes(table, codes)
    by = []
    for name in table.by:
        kept = tuple(code for code in codes[name] if code in table.where.get(name, (code,)))
        if table.totals and TOTAL in kept:
            raise ReleaseError(
                f"table '{table.name}', totals",
                expected=f"attributes without a code '{TOTAL}', which names the sum of the others",
                found=f"one in '{name}'",
                do="rename the code, or leave out `totals`",
            )
        by.append(Dimension(name=name, codes=(*kept, *([TOTAL] if table.totals else []))))
    return ContributorQuestion(
        by=tuple(by), measure=table.measure, contributors=contributors, margins=table.totals, where=table.where
    )


def ask(table: Table, frame: Frame, codelists: Mapping[str, Codelist], *, method: str) -> Asked:
    """What a table asks of jobs, given the codes of the attributes and the method that will protect it."""
    if table.of_records:
        raise ReleaseError(
            f"table '{table.name}'",
            expected="a table of records: records = { … } under [data]",
            found="jobs",
            do="count jobs, or describe the records under [data]",
        )
    span, period = frame.span, frame.jobs.period
    codes = {name: codelist.codes for name, codelist in codelists.items()}
    if span is not None and period is not None:
        codes[period] = span.codes()
    _refuse_unknown_codes(table, codes)

    def dimension(name: str, of: str) -> Dimension:
        kept = tuple(code for code in codes[of] if code in table.where.get(of, (code,)))
        return Dimension(name=name, codes=kept, public=of == period or frame.is_public(of))

    by = tuple(dimension(name, name) for name in table.by)
    if table.statistic == "count":
        _refuse_panel(table, frame)
        threshold = table.protect.options.get("threshold", 100)
        return Question(by=by, where=table.where, needs=needs(method), threshold=threshold)
    if table.statistic == "indicators":
        _need_panel(table, frame)
        _need_period(table, frame)
        return IndicatorQuestion(by=(*by, Dimension(name=NAME, codes=CODES)), where=table.where)
    ends = tuple(dimension(name, of) for name, of in table.end_names().items())
    return _pairs(table, frame, (*ends, *by))


def _refuse_unknown_codes(table: Table, codes: Mapping[str, tuple[str, ...]]) -> None:
    for name, kept in table.where.items():
        unknown = [code for code in kept if code not in codes[name]]
        if unknown or not kept:
            raise ReleaseError(
                f"table '{table.name}', where {name}",
                expected=f"codes of {name}, such as {', '.join(codes[name][:5])}",
                found=", ".join(unknown) or "none",
                do="correct the codes",
            )


def _pairs(table: Table, frame: Frame, by: tuple[Dimension, ...]) -> PairQuestion:
    rule = table.protect.options.get("edges", "keyed")
    if rule not in ("keyed", "twelve-characters"):
        raise ReleaseError(
            f"table '{table.name}', edges",
            expected='"keyed" or "twelve-characters": which of its two employers\' factors an edge takes',
            found=repr(rule),
            do="leave it out, or choose one of them",
        )
    workers = table.graph is not None and table.graph.between == "workers"
    for name in table.ends:
        if frame.is_public(name) == workers or name == frame.jobs.period:
            raise ReleaseError(
                f"table '{table.name}', attribute '{name}'",
                expected=f"an attribute of {'workers' if workers else 'workplaces (listed in `public`)'}",
                found="another",
                do="choose another attribute, or correct `public`",
            )
    if frame.jobs.worker is None or frame.joined:
        raise ReleaseError(
            f"table '{table.name}'",
            expected="jobs that name their worker, and a table of workplaces",
            found="no workplaces" if frame.joined else "no `worker` in jobs",
            do="describe both under [data]",
        )
    if table.flow is None:
        weight = "edges" if table.graph is not None and table.graph.weight == "edges" else "multiplicity"
    else:
        _need_panel(table, frame)
        weight = "edges" if table.flow.weight == "edges" else "multiplicity"
        for name in (*table.by, *table.where):
            if frame.is_public(name):
                raise ReleaseError(
                    f"table '{table.name}', '{name}'",
                    expected="the period or attributes of workers beside the two ends of a flow",
                    found="an attribute of workplaces, of which a move has two",
                    do="add it to the attributes of the flow",
                )
    return PairQuestion(
        by=by,
        attributes=table.ends,
        kind="graph" if table.flow is None else "flow",
        between="workers" if workers else "employers",
        weight="edges" if weight == "edges" else "multiplicity",
        directed=table.directed,
        rule="keyed" if rule == "keyed" else "twelve-characters",
        where=table.where,
    )


def _need_panel(table: Table, frame: Frame) -> None:
    if frame.span is None:
        raise ReleaseError(
            f"table '{table.name}'",
            expected="a panel: jobs with worker, period, first, last and earnings",
            found="jobs without a period",
            do="describe the history under [data], or count jobs",
        )


def _need_period(table: Table, frame: Frame) -> None:
    if frame.jobs.period not in table.by:
        raise ReleaseError(
            f"table '{table.name}'",
            expected=f"indicators by '{frame.jobs.period}', among others: they are about one period each",
            found=f"by = {list(table.by)}",
            do=f"add '{frame.jobs.period}' to `by`",
        )


def _refuse_panel(table: Table, frame: Frame) -> None:
    if frame.span is not None:
        raise ReleaseError(
            f"table '{table.name}'",
            expected="indicators, a flow or a graph: the rows of a panel are jobs in a period, not jobs",
            found='count = "jobs"',
            do='write indicators = ["employment"] to count the jobs of each period',
        )
