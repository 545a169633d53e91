"""From a table of a release to the question that the engine answers."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from math import ceil, floor

from sfumato.cells import Dimension
from sfumato.errors import MethodError, ReleaseError
from sfumato.frame import Codelist, Frame
from sfumato.microdata import Microdata
from sfumato.privacy.guarantee import plain
from sfumato.statistics.jobs.question import Question
from sfumato.statistics.panel.indicators import CODES, NAME
from sfumato.statistics.panel.question import IndicatorQuestion, PairQuestion
from sfumato.statistics.people.bins import PublicBins
from sfumato.statistics.people.percentiles import bins_of_guess
from sfumato.statistics.people.question import AT, STATISTICS, Bounded, SampleQuestion
from sfumato.statistics.people.tabulate import BIN
from sfumato.statistics.questions import Asked
from sfumato.statistics.registry import needs
from sfumato.statistics.table import Bins, Table
from sfumato.statistics.totals.question import TOTAL, ContributorQuestion
from sfumato.statistics.totals.top_contributors import TopContributors

MADE = (AT, BIN, "count")
"""Columns of statistics of people; an attribute of theirs cannot have one of these names."""


def ask_records(
    table: Table, data: Microdata, codelists: Mapping[str, Codelist], *, method: str, contributors: int
) -> Asked:
    """What a table asks of a table of records; `contributors` is how many of the largest units must be known."""
    _know_measures(table, data)
    codes = {name: codelist.codes for name, codelist in codelists.items()}
    _refuse_unknown_codes(table, codes)
    if method != TopContributors.name:
        return _samples(table, data, codes, method=method)
    clipped = [name for name in table.measures if data.measures[name].outside == "clip"]
    if clipped:
        raise ReleaseError(
            f"table '{table.name}', measure '{clipped[0]}'",
            expected="a measure whose values are published as they are",
            found='outside = "clip", which predictions, means and percentiles of people know',
            do="leave `outside` out, or choose a method for people",
        )
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
        by=tuple(by),
        measure=table.measure,
        contributors=contributors,
        margins=table.totals,
        ratio=table.mean is not None,
        where=table.where,
    )


def _know_measures(table: Table, data: Microdata) -> None:
    if not table.of_records:
        raise ReleaseError(
            f"table '{table.name}'",
            expected='a total, a mean, a prediction, quantiles or count = "records": the data are records, not jobs',
            found=f"{table.statistic}",
            do='write total = "…", mean = "…", predict = { … }, quantiles = { … } or count = "records"',
        )
    for name in table.measures:
        if name not in data.measures:
            close = get_close_matches(name, list(data.measures), n=1)
            raise ReleaseError(
                f"table '{table.name}', {table.statistic}",
                expected=f"a measure: {', '.join(data.measures) or 'none is described'}",
                found=f"'{name}'",
                do=f"did you mean '{close[0]}'?" if close else "describe it under [data.measures]",
            )


def _samples(table: Table, data: Microdata, codes: Mapping[str, tuple[str, ...]], *, method: str) -> SampleQuestion:
    """What a statistic of people asks; docs/methods/small-samples.md says who is protected."""
    _need_people(table, data)
    classes = classes_of(table, data)
    for name in (*table.by, *table.where, *classes):
        if name in MADE:
            raise ReleaseError(
                f"table '{table.name}', attribute '{name}'",
                expected=f"attributes with other names than {', '.join(MADE)}, which are columns of such tables",
                found=f"'{name}'",
                do="rename the column",
            )

    def dimensions(names: Iterable[str]) -> tuple[Dimension, ...]:
        return tuple(
            Dimension(name=name, codes=tuple(c for c in codes[name] if c in table.where.get(name, (c,))))
            for name in names
        )

    statistic = next(known for known in STATISTICS if known == table.statistic)  # the method knows no other
    summed = statistic in ("predict", "mean")
    y = None if table.measure is None else _bounded(table, data, table.measure, needed=summed)
    bins = None if table.quantiles is None or y is None else bins_of(table, table.quantiles.bins, y)
    at = {"predict": "{}", "quantiles": "p{}", "mean": "mean"}.get(table.statistic, "")
    return SampleQuestion(
        groups=dimensions(table.by),
        statistic=statistic,
        at=tuple(at.format(plain(place)) for place in table.at) if table.at is not None else (at,) if at else (),
        x=None if table.predict is None else _bounded(table, data, table.predict.on, needed=True),
        y=y,
        edges=() if bins is None else bins.edges,
        tails=(1, 1) if bins is None else bins.tails,
        classes=dimensions(classes),
        needs=needs(method),
        where=table.where,
    )


def periods_of(data: Microdata, question: SampleQuestion) -> int:
    """In how many periods a table publishes a person."""
    return next((len(dimension) for dimension in question.groups if dimension.name == data.records.period), 1)


def classes_of(table: Table, data: Microdata) -> tuple[str, ...]:
    """The attributes of calibration classes, as the option `classes` of a method names them."""
    classes = table.protect.options.get("classes", ())
    classes = (classes,) if isinstance(classes, str) else classes
    if not isinstance(classes, list | tuple):
        classes = (classes,)
    for name in classes:
        if name not in data.attributes:
            close = get_close_matches(str(name), list(data.attributes), n=1)
            raise ReleaseError(
                f"table '{table.name}', classes",
                expected=f"attributes: {', '.join(data.attributes)}",
                found=f"'{name}'",
                do=f"did you mean '{close[0]}'?" if close else "describe it under [data.attributes]",
            )
    return tuple(dict.fromkeys(classes))


def bins_of(table: Table, bins: Bins, of: Bounded) -> PublicBins:
    """The public bins of percentiles: those that are listed, or of a guess within the bounds of the measure."""
    if bins.edges is not None:
        return PublicBins(edges=bins.edges)
    if bins.median is None or bins.sigma is None or bins.number is None:
        raise ValueError("bins are a list of edges or a guess")
    return bins_of_guess(
        table.protect.options.get("curve", "adaptive"),
        median=bins.median,
        sigma=bins.sigma,
        number=bins.number,
        minimum=of.low,
        maximum=of.high,
    )


def asked_before(table: Table, question: Asked) -> SampleQuestion | None:
    """The question about percentiles as version 0.1.0 asked it: bins of a guess ended where the guess ends."""
    if not isinstance(question, SampleQuestion) or table.quantiles is None or question.y is None:
        return None
    bins, of = table.quantiles.bins, question.y
    if bins.median is None or bins.sigma is None or bins.number is None:
        return question
    with suppress(MethodError):
        even = PublicBins.equal_mass(
            median=bins.median, sigma=bins.sigma, number=bins.number, minimum=of.low, maximum=of.high
        )
        return replace(question, edges=even.edges, tails=even.tails)
    return None


def _bounded(table: Table, data: Microdata, name: str, *, needed: bool) -> Bounded:
    measure = data.measures[name]
    low, high = ceil(measure.minimum), None if measure.maximum is None else floor(measure.maximum)
    if needed and (high is None or high <= low):
        raise ReleaseError(
            f"table '{table.name}', measure '{name}'",
            expected="a minimum and a larger maximum, which bound what one person can change",
            found="no maximum" if high is None else "a maximum that is not above the minimum",
            do=f'write {name} = {{ minimum = …, maximum = …, outside = "clip" }} under [data.measures]',
        )
    return Bounded(name=name, low=low, high=high)


def _need_people(table: Table, data: Microdata) -> None:
    """Refuse records that are not one a person and period, or a table that adds up several periods of a person."""
    records = data.records
    kept = [key for key in ("levels", "weight", "consent") if getattr(records, key)]
    if kept:
        raise ReleaseError(
            f"table '{table.name}', method '{table.protect.method}'",
            expected="records of people that count once each and are all protected",
            found=f"`{kept[0]}` in [data.records]",
            do="leave it out, or use the method top-contributors",
        )
    if table.totals:
        raise ReleaseError(
            f"table '{table.name}', totals",
            expected="a table without totals: each would be one more statistic about every person",
            found="totals = true",
            do="ask for the total as a table of its own",
        )
    period = records.period
    if period is not None and period not in table.by and len(table.where.get(period, ())) != 1:
        raise ReleaseError(
            f"table '{table.name}'",
            expected=f"'{period}' in `by`, or one '{period}' in `where`: a person has a record in each",
            found=f"by = {list(table.by)}",
            do=f"add '{period}' to `by`, or choose one with where",
        )


def ask(table: Table, frame: Frame, codelists: Mapping[str, Codelist], *, method: str) -> Asked:
    """What a table asks of jobs, given the codes of the attributes and the method that will protect it."""
    refuse_other_data(table, frame)
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


def refuse_other_data(table: Table, frame: Frame) -> None:
    """Refuse a statistic that no method publishes of these jobs, before a method for it is looked for."""
    if table.of_records:
        raise ReleaseError(
            f"table '{table.name}'",
            expected="a table of records: records = { … } under [data]",
            found="jobs",
            do="count jobs, or describe the records under [data]",
        )
    if table.statistic in ("indicators", "flow") and frame.span is None:
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
