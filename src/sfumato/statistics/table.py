"""A `[[table]]` section: one statistic, its cells, and how it is protected."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal, Self, get_args

from pydantic import ConfigDict, Field, field_validator, model_validator

from sfumato.errors import ReleaseError
from sfumato.frame import Described, Exact, Frame, exact
from sfumato.microdata import Microdata
from sfumato.statistics.panel.indicators import CODES
from sfumato.statistics.panel.section import EARNINGS, ENDS, Degrees, Flow, Graph
from sfumato.statistics.registry import for_people, is_for_people, is_keyed

StatisticName = Literal["count", "indicators", "flow", "graph", "degrees", "total", "mean", "predict", "quantiles"]
STATISTICS: tuple[StatisticName, ...] = get_args(StatisticName)
FOR_TOTALS = ("top-contributors", "perturbed-values")
"""The methods of totals of records, whose classes are loaded when a release names them."""
LISTED_CELLS = 100_000
"""Larger tables are mostly combinations without any establishment, which only make files longer."""


class Protection(Described):
    """How a table is protected; a method may take further options, which docs/methods describes."""

    model_config = ConfigDict(frozen=True, extra="allow", arbitrary_types_allowed=True)

    method: str = Field("smooth-pareto", description="name of the method of protection")
    epsilon: Exact | None = Field(
        None,
        description="what the whole table spends of the budget; not for methods without a formal guarantee. Of people "
        'by period it may be a table of what each period spends, { "2001" = 1, "2002" = 0.5 }, which add up',
    )
    by_period: dict[str, Exact] = Field(
        {}, description="what each period spends, where `epsilon` is written as a table; not written itself"
    )
    alpha: Exact | None = Field(None, description="the budget's alpha when not given")

    @model_validator(mode="before")
    @classmethod
    def _adds_up_periods(cls, written: object) -> object:
        if not isinstance(written, dict) or not isinstance(written.get("epsilon"), dict):
            return written
        periods = {str(code): exact(epsilon) for code, epsilon in written["epsilon"].items()}
        if not periods or min(periods.values()) <= 0:
            raise ValueError("`epsilon` above 0 for every period")
        return written | {"epsilon": sum(periods.values(), Fraction(0)), "by_period": periods}

    @model_validator(mode="after")
    def _spends(self) -> Self:
        if self.by_period and sum(self.by_period.values(), Fraction(0)) != self.epsilon:
            raise ValueError("write what each period spends as a table: epsilon = { … }")
        if not is_keyed(self.method) and self.epsilon is None:
            others = f" and not {', '.join(map(repr, self.options))}" if self.options else ""
            raise ValueError(f"the key 'epsilon'{others}: what the table spends of the budget")
        return self

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Only the name: options of a method may be secrets."""
        yield "method", self.method

    @property
    def options(self) -> dict[str, Any]:
        """What only the chosen method knows, such as delta."""
        return dict(self.model_extra or {})


class Predict(Described):
    """What a least-squares line through the people of each group says at chosen values."""

    outcome: str = Field(description="measure that is predicted; it needs a minimum and a maximum")
    on: str = Field(description="measure it is predicted from; it needs a minimum and a maximum")
    at: tuple[Exact, ...] = Field(
        min_length=1,
        description="values of `on` to predict at, in its smallest unit; with mose and theil-sen each costs a share",
    )

    @model_validator(mode="after")
    def _predicts_something_else(self) -> Self:
        if self.outcome == self.on:
            raise ValueError("`outcome` and `on` are two measures")
        if len(set(self.at)) != len(self.at):
            raise ValueError("each value of `at` once")
        return self


class Bins(Described):
    """The public bins in which values are counted: a list of edges, or bins of equal mass of a log-normal guess."""

    edges: tuple[int, ...] | None = Field(
        None, description="ends of the bins, in the smallest unit, increasing; bins = [0, 20000, …] is short for this"
    )
    median: Exact | None = Field(None, description="median of the log-normal distribution that is guessed; not of data")
    sigma: Exact | None = Field(None, description="standard deviation of its logarithm, such as 0.6")
    number: int | None = Field(
        None,
        ge=2,
        le=1000,
        description="number of bins that share it equally; with the adaptive curve the outer two are divided further",
    )

    @model_validator(mode="before")
    @classmethod
    def _accepts_a_list(cls, bins: object) -> object:
        return {"edges": bins} if isinstance(bins, list | tuple) else bins

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> Self:
        guess = (self.median, self.sigma, self.number)
        if self.edges is None:
            if any(part is None for part in guess):
                raise ValueError("a list of edges, or all of `median`, `sigma` and `number`")
            if not (self.median and self.median > 0 and self.sigma and self.sigma > 0):
                raise ValueError("`median` and `sigma` above 0")
            return self
        if any(part is not None for part in guess):
            raise ValueError("either a list of edges, or `median`, `sigma` and `number`")
        if len(self.edges) < 3:
            raise ValueError(f"at least three edges that increase, not {len(self.edges)}")
        for low, high in pairwise(self.edges):
            if high <= low:
                raise ValueError(
                    f"increasing edges: edges that increase from each to the next, not {low} and then {high}"
                )
        return self


class Quantiles(Described):
    """Percentiles of a measure among the people of each group, from a noisy histogram."""

    of: str = Field(description="measure whose percentiles are published")
    at: tuple[Exact, ...] = Field(
        min_length=1, description="percentiles such as [25, 50, 75]: increasing, above 0 and below 100"
    )
    bins: Bins = Field(description="public bins in which values are counted; never read off the data")

    @field_validator("at")
    @classmethod
    def _are_percentiles(cls, at: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        if any(not 0 < place < 100 for place in at) or any(high <= low for low, high in pairwise(at)):
            raise ValueError("percentiles that increase, above 0 and below 100")
        return at


class Table(Described):
    """A `[[table]]` section: one statistic by some attributes."""

    name: str = Field(description="file name in the bundle: lower-case letters, digits, - and _")
    title: str = Field("", description="heading of the table; the name when not given")
    count: Literal["jobs", "records"] | None = Field(
        None, description="what is counted: jobs, or the records of businesses or a survey, weighted"
    )
    total: str | None = Field(None, description="measure whose weighted total is published, of businesses or a survey")
    mean: str | None = Field(None, description="measure whose mean is published, weighted where the records are")
    predict: Predict | None = Field(None, description="what a line through the people of each group predicts")
    quantiles: Quantiles | None = Field(None, description="percentiles of a measure among the people of each group")
    indicators: tuple[str, ...] | None = Field(
        None, description='workforce indicators of a panel: "all", or a list such as ["beginning", "end"]'
    )
    flow: Flow | None = Field(None, description="moves between employers of a panel, by an attribute of both")
    graph: Graph | None = Field(None, description="pairs of employers or workers, by an attribute of both")
    degrees: Degrees | None = Field(None, description="employers by how many others they share workers with")
    by: tuple[str, ...] = Field((), description="the attributes that make the cells; in a panel also its period")
    where: dict[str, tuple[str, ...]] = Field(
        {},
        description="only jobs or records with these codes, by attribute; of flows and graphs also of one end, such as "
        "origin_industry",
    )
    protect: Protection = Field(description="how the table is protected, and what it costs")
    totals: bool = Field(
        False, description='add the code "total" to every dimension of a table of records, protected by itself'
    )
    decimals: int = Field(2, ge=0, le=6, description="digits after the point of a mean, a prediction or a percentile")
    unknown_errors: Literal["withheld", "published"] = Field(
        "withheld",
        description="what becomes of a prediction or mean of people whose error nothing published tells; published, it "
        "may be far beyond the bounds of its measure",
    )
    nonnegative: bool = Field(False, description="publish negative values as 0; the statement then warns of the bias")
    structural_zeros: Literal["auto", "listed", "implied"] = Field(
        "auto",
        description="whether combinations without any establishment are rows (exactly 0) or left out; "
        f"auto lists them in tables of up to {LISTED_CELLS:,} cells",
    )
    establishments: bool = Field(
        True,
        description="whether counts of jobs and indicators tell the number of establishments of each cell; false, "
        "combinations without any are protected like others, or with noise-infusion look like others with the value 0",
    )
    parts: int | None = Field(
        None,
        ge=1,
        le=10_000,
        description="make the table in so many parts, a folder of Parquet files, so that it need not fit into memory; "
        "large counts of jobs or people are in parts anyway, and in more than asked for where their size needs more",
    )

    @field_validator("name")
    @classmethod
    def _names_a_file(cls, name: str) -> str:
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name):
            raise ValueError("lower-case letters, digits, - and _ are allowed, at most 64")
        return name

    @field_validator("by")
    @classmethod
    def _lists_each_once(cls, by: tuple[str, ...]) -> tuple[str, ...]:
        repeated = [name for name, times in Counter(by).items() if times > 1]
        if repeated:
            raise ValueError(f"'{repeated[0]}' is listed twice")
        return by

    @field_validator("where", mode="before")
    @classmethod
    def _accepts_one_code(cls, where: object) -> object:
        if not isinstance(where, dict):
            return where
        return {name: [codes] if isinstance(codes, str) else codes for name, codes in where.items()}

    @field_validator("indicators", mode="before")
    @classmethod
    def _accepts_all(cls, indicators: object) -> object:
        return CODES if indicators == "all" else indicators

    @field_validator("indicators")
    @classmethod
    def _knows_each(cls, indicators: tuple[str, ...] | None) -> tuple[str, ...] | None:
        unknown = [code for code in indicators or () if code not in CODES]
        if unknown or indicators == ():
            raise ValueError(f'"all", or some of {", ".join(CODES)}')
        return None if indicators is None else tuple(code for code in CODES if code in indicators)

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        asked = [name for name in STATISTICS if getattr(self, name) is not None]
        if len(asked) != 1:
            found = "all of " + ", ".join(asked) if asked else "none of them"
            raise ValueError(f"a table asks for one of {', '.join(STATISTICS)}; this one for {found}")
        if self.statistic not in ("flow", "graph") and not self.by:
            raise ValueError("`by` needs at least one attribute")
        if not self.establishments and not (self.count == "jobs" or self.indicators is not None):
            raise ValueError(
                "`establishments = false` is for counts of jobs and indicators: elsewhere the number is not published"
            )
        if not self.establishments and self.structural_zeros == "implied" and not is_keyed(self.protect.method):
            raise ValueError(
                "without the number of establishments every combination of codes is protected and a row: leave out "
                "`structural_zeros`, or `establishments = false`"
            )
        if self.nonnegative and self.count != "jobs":
            raise ValueError("`nonnegative` is for counts of jobs")
        if self.unknown_errors == "published" and self.statistic not in ("predict", "mean"):
            raise ValueError("`unknown_errors` is for predictions and means: other values have an error, or need none")
        if self.totals and (not self.of_records or self.at is not None):
            raise ValueError("`totals` are for tables of records, but not for predictions and percentiles")
        return self

    @property
    def statistic(self) -> StatisticName:
        """Which of the statistics the table asks for."""
        return next(name for name in STATISTICS if getattr(self, name) is not None)

    @property
    def of_records(self) -> bool:
        """Whether the table is about records of businesses or a survey, and not about jobs."""
        return self.count == "records" or self.statistic in ("total", "mean", "predict", "quantiles")

    @property
    def measure(self) -> str | None:
        """The measure that the values are about; None counts."""
        if self.predict is not None:
            return self.predict.outcome
        return self.quantiles.of if self.quantiles is not None else self.total or self.mean

    @property
    def at(self) -> tuple[Fraction, ...] | None:
        """Where predictions or percentiles are asked for; None for other statistics."""
        asked = self.predict or self.quantiles
        return None if asked is None else asked.at

    @property
    def measures(self) -> tuple[str, ...]:
        """Every measure the table looks at."""
        return (*filter(None, [self.measure]), *([] if self.predict is None else [self.predict.on]))

    @property
    def ends(self) -> tuple[str, ...]:
        """The attributes that classify both ends of a flow or graph."""
        pairs = self.flow or self.graph
        return () if pairs is None else pairs.attribute

    @property
    def directed(self) -> bool:
        """Whether the two ends of a pair are told apart."""
        pairs = self.flow or self.graph
        return pairs is not None and pairs.directed

    @property
    def of_earnings(self) -> bool:
        """Whether pairs are weighted by earnings."""
        pairs = self.flow or self.graph
        return pairs is not None and pairs.weight in EARNINGS

    @property
    def unit(self) -> str:
        """What the values of the table are numbers of."""
        if self.of_earnings:
            return "units of earnings"
        if self.flow is not None:
            return "pairs of employers" if self.flow.weight == "edges" else "moves of workers"
        if self.graph is not None:
            pairs = f"pairs of {self.graph.between}"
            return pairs if self.graph.weight == "edges" else f"{self.graph.weight} shared by {pairs}"
        if self.of_records or self.degrees is not None:
            return "employers" if self.degrees else self.measure or "records"
        return "jobs" if self.count else "jobs, or units of earnings"

    def kept(self, name: str, codes: Sequence[str]) -> tuple[str, ...]:
        """The codes of an attribute that are asked for."""
        return tuple(code for code in codes if code in self.where.get(name, (code,)))

    def end_names(self) -> dict[str, str]:
        """The dimensions of both ends, each with the attribute it is about.

        >>> table = Table(name="f", flow=Flow(attribute="state"), protect=Protection(method="noise-infusion"))
        >>> table.end_names()
        {'origin_state': 'state', 'destination_state': 'state'}
        """
        return {f"{end}_{name}": name for end in ENDS[self.directed] for name in self.ends}

    def end_filters(self, attributes: Collection[str]) -> dict[str, tuple[str, tuple[bool, bool]]]:
        """The names in `where` that are about one end: the attribute, and whether the one or the other end has it.

        >>> flow = {"attribute": "state"}
        >>> chosen = {"origin_industry": "62", "sex": "F"}
        >>> table = Table(name="f", flow=flow, where=chosen, protect=Protection(method="noise-infusion"))
        >>> table.end_filters(["state", "industry", "sex"])
        {'origin_industry': ('industry', (True, False))}
        """
        one, other = ENDS[self.directed]
        ends = {f"{one}_": (True, False), f"{other}_": (False, True)} if self.ends else {}
        return {
            name: (name.removeprefix(end), sides)
            for name in self.where
            for end, sides in ends.items()
            if name not in attributes and name.startswith(end) and name.removeprefix(end) in attributes
        }


def refuse_unknown_codes(table: Table, codes: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse a filter by codes that an attribute does not have."""
    for name, kept in table.where.items():
        unknown = [code for code in kept if code not in codes[name]]
        if unknown or not kept:
            raise ReleaseError(
                f"table '{table.name}', where {name}",
                expected=f"codes of {name}, such as {', '.join(codes[name][:5])}",
                found=", ".join(unknown) or "none",
                do="correct the codes",
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


def know_measures(table: Table, data: Microdata) -> None:
    """Refuse a statistic that records do not have, and measures that are not described."""
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


def methods_for_records(table: Table) -> dict[str, str]:
    """What a release file may name for a table of records, each with what is used."""
    people = for_people(table.statistic)
    keyed = FOR_TOTALS if table.statistic in ("count", "total", "mean") else ()
    return {**{name: name for name in keyed}, **people}


def need_one_period(table: Table, data: Any, words: str = "a unit has a record in each") -> None:
    """Refuse a table whose cells add up several periods of the same units."""
    period = data.records.period
    if period is not None and period not in table.by and len(table.where.get(period, ())) != 1:
        raise ReleaseError(
            f"table '{table.name}'",
            expected=f"'{period}' in `by`, or one '{period}' in `where`: {words}",
            found=f"by = {list(table.by)}",
            do=f"add '{period}' to `by`, or choose one with where",
        )


def named_method(table: Table, fitting: Mapping[str, str]) -> str:
    """The method that is used for what a release file names; one that is not for such tables is refused."""
    named = table.protect.method
    if named not in fitting:
        raise ReleaseError(
            f"table '{table.name}', method '{named}'",
            expected=f"{' or '.join(fitting)}, the {'method' if len(fitting) == 1 else 'methods'} for such tables",
            found=f"'{named}'",
            do=f'write protect = {{ method = "{_nearest(named, fitting)}" }}',
        )
    return fitting[named]


def _nearest(method: str, fitting: Iterable[str]) -> str:
    """The method most like the one that was named; for people, where one for people was named."""
    known = list(fitting)
    people = {name for statistic in STATISTICS for name in for_people(statistic)}
    if method in people:
        known = [name for name in known if name in people] or known
    return next(iter(get_close_matches(method, known, n=1)), known[0])


def used_options(table: Table, *elsewhere: str) -> dict[str, Any]:
    """The options of a method, without those that are used elsewhere."""
    return {option: value for option, value in table.protect.options.items() if option not in elsewhere}


def epsilon_of(table: Table, name: str) -> Fraction | None:
    """What a table spends; a method with a key takes neither alpha nor epsilon."""
    if is_keyed(name):
        for parameter in ("alpha", "epsilon"):
            value = getattr(table.protect, parameter)
            if value is not None:
                raise ReleaseError(
                    f"method '{table.protect.method}', {parameter}",
                    expected="neither alpha nor epsilon: it has no formal guarantee and costs no budget",
                    found=f"{parameter} = {float(value):g}",
                    do="leave it out",
                )
    if table.protect.by_period and not is_for_people(name):
        raise ReleaseError(
            f"table '{table.name}', epsilon",
            expected="one number: only tables of people by period spend an epsilon of its own in each",
            found="a table of epsilons",
            do="write one number",
        )
    return table.protect.epsilon
