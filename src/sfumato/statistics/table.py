"""A `[[table]]` section: one statistic, its cells, and how it is protected."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from typing import Any, Literal, Self, get_args

from pydantic import ConfigDict, Field, field_validator, model_validator

from sfumato.description import Described, Exact, exact
from sfumato.frame.levels import AT, at_level, each_combination, pairs_of, published_name, published_names
from sfumato.statistics.panel.indicators import CODES
from sfumato.statistics.panel.section import EARNINGS, ENDS, Degrees, Flow, Graph
from sfumato.statistics.people.section import Predict, Quantiles
from sfumato.statistics.registry import is_exact, is_free, meant, takes_key
from sfumato.statistics.totals.section import GrowthOf
from sfumato.statistics.wish import Wish

StatisticName = Literal[
    "count", "indicators", "flow", "graph", "degrees", "total", "mean", "growth", "predict", "quantiles"
]
STATISTICS: tuple[StatisticName, ...] = get_args(StatisticName)
FOR_TOTALS = ("top-contributors", "perturbed-values")
"""The methods of totals of records, whose classes are loaded when a release names them."""
AT_A_PERIOD = ("count", "total", "mean")
"""Statistics of jobs at a period of a panel, by the population of its jobs."""
FOR_UNITS = {"smooth-pareto": "unit-pareto", "unit-pareto": "unit-pareto"}
"""What a release file may name for totals and means of records with a guarantee, each with what is used."""
BUYS = "error_epsilon"
"""The option of a method that buys the scale of its noise for error figures."""
_LONGEST = 64  # characters of the name of a table
LISTED_CELLS = 100_000
"""Larger tables are mostly combinations without any establishment, which only make files longer."""


class Protection(Described):
    """How a table is protected; a method may take further options, which docs/methods describes."""

    model_config = ConfigDict(frozen=True, extra="allow", arbitrary_types_allowed=True)

    method: str = Field("smooth-pareto", description="name of the method of protection")
    epsilon: Exact | None = Field(
        None,
        description="what the whole table spends of the budget; not for methods without a formal guarantee. Of people, "
        'indicators and moves by period it may be a table of what each period spends, { "2001" = 1, "2002" = 0.5 }, '
        "which add up; with `levels`, of what the table of each combination spends",
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
        if not is_free(self.method) and self.epsilon is None:
            if unknown := meant(self.method):
                raise ValueError(f"a method that there is, and not '{self.method}': {unknown}")
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

    @property
    def needs_key(self) -> bool:
        """Whether it is done with a key file."""
        return takes_key(self.method, self.options)

    def each_spends(self, names: Sequence[str]) -> dict[str, "Protection"]:
        """The protection of each of several tables that this one stands for: an even share, or what each has."""
        bought = self._each_buys(names)
        if not self.by_period:
            return {name: self.scaled(Fraction(1, len(names)))._buying(bought.get(name)) for name in names}
        if self.by_period.keys() != set(names):
            raise ValueError(f"`epsilon` is one number, or has what each table spends: {', '.join(names)}")
        return {
            name: self.model_copy(update={"epsilon": epsilon, "by_period": {}})._buying(bought.get(name))
            for name, epsilon in self.by_period.items()
        }

    def _each_buys(self, names: Sequence[str]) -> dict[str, Fraction]:
        """What the scale of each of several tables costs; nothing where the option is not written."""
        written = self.options.get(BUYS)
        if written is None:
            return {}
        if not isinstance(written, dict):
            return dict.fromkeys(names, exact(written) / len(names))
        if written.keys() != set(names):
            raise ValueError(
                f"`{BUYS}` is one number, or has what the scale of each table costs, 0 where none is bought: "
                f"{', '.join(names)}"
            )
        return {name: exact(epsilon) for name, epsilon in written.items()}

    def _buying(self, epsilon: Fraction | None) -> "Protection":
        """The same with another cost of its scale, where it has one; without the option where that is 0."""
        if epsilon is None:
            return self
        said: dict[str, Any] = {name: value for name, value in self if name != BUYS}
        return Protection(**(said | {BUYS: epsilon} if epsilon else said))

    def scaled(self, times: Fraction) -> "Protection":
        """The same with so many times the epsilon."""
        if self.epsilon is None:
            return self
        periods = {period: epsilon * times for period, epsilon in self.by_period.items()}
        return self.model_copy(update={"epsilon": self.epsilon * times, "by_period": periods})


def name_at_levels(name: str, words: str) -> str:
    """The name of the table of one combination of levels, by the names of its dimensions put together.

    >>> name_at_levels("jobs", "place_NUTS_2")
    'jobs_by_place_nuts_2'
    """
    return re.sub(r"[^a-z0-9_-]+", "_", f"{name}_by_{words.lower()}")


def title_at_levels(title: str, by: Sequence[str]) -> str:
    """The heading of the table of one combination of levels."""
    return f"{title}: {', '.join(by).replace('_', ' ')}"


class Table(Described):
    """A `[[table]]` section: one statistic by some attributes."""

    name: str = Field(description="file name in the bundle: lower-case letters, digits, - and _")
    title: str = Field("", description="heading of the table; the name when not given")
    count: Literal["jobs", "records"] | None = Field(
        None, description="what is counted: jobs, or the records of businesses or a survey, weighted"
    )
    total: str | None = Field(
        None,
        description="measure whose total is published: of jobs, with a `cap` and a guarantee, of people with bounds "
        "and a guarantee, or weighted, of businesses or a survey",
    )
    mean: str | None = Field(
        None,
        description="measure whose mean is published: of jobs, with a `cap` and a guarantee, or of records, weighted "
        "where these are",
    )
    growth: GrowthOf | None = Field(
        None, description="growth of a total from period to period, in percent with its error; records have a `period`"
    )
    predict: Predict | None = Field(None, description="what a line through the people of each group predicts")
    quantiles: Quantiles | None = Field(None, description="percentiles of a measure among the people of each group")
    indicators: tuple[str, ...] | None = Field(
        None, description='workforce indicators of a panel: "all", or a list such as ["beginning", "end"]'
    )
    flow: Flow | None = Field(None, description="moves between employers of a panel, by an attribute of both")
    graph: Graph | None = Field(None, description="pairs of employers or workers, by an attribute of both")
    degrees: Degrees | None = Field(None, description="employers by how many others they share workers with")
    by: tuple[str, ...] = Field(
        (),
        description="the attributes that make the cells, or levels of them, such as industry@sector; in a panel also "
        "its period",
    )
    levels: dict[str, tuple[str, ...]] = Field(
        {},
        description="makes a table of each combination of levels of attributes in `by`, such as { industry = "
        '["total", "sector", "industry"] }; they share `epsilon`, and `error_epsilon`, evenly, or have each their own',
    )
    where: dict[str, tuple[str, ...]] = Field(
        {},
        description="only jobs or records with these codes, by attribute; of flows and graphs also of one end, such as "
        "origin_industry. Counts of jobs with other codes of a public attribute are charged once: see docs/ledger.md",
    )
    protect: Protection = Field(description="how the table is protected, and what it costs")
    wish: str | None = Field(
        None,
        description='how accurate the cells are to be, such as "5%" or "100 jobs", for `sfumato plan`; it changes no '
        "number",
    )
    totals: bool = Field(
        False,
        description='add the code "total" to every dimension of a table of records, or of true numbers of jobs, '
        "protected by itself",
    )
    decimals: int = Field(
        2, ge=0, le=6, description="digits after the point of a mean, growth, a prediction or a percentile"
    )
    unknown_errors: Literal["withheld", "published"] = Field(
        "withheld",
        description="what becomes of a prediction or mean of people whose error nothing published tells; published, it "
        "may be far beyond the bounds of its measure",
    )
    nonnegative: bool = Field(False, description="publish negative values as 0; the statement then warns of the bias")
    composite: tuple[str, ...] | None = Field(
        None,
        description="publish composite estimates beside the values of a reconciled count of jobs by attributes of "
        "workers, who are taken for alike within the codes of these public attributes; [] for all workplaces",
    )
    structural_zeros: Literal["auto", "listed", "implied"] = Field(
        "auto",
        description="whether combinations without any establishment are rows (exactly 0) or left out; "
        f"auto lists them in tables of up to {LISTED_CELLS:,} cells",
    )
    establishments: bool = Field(
        True,
        description="whether counts and totals of jobs and indicators tell the number of establishments of each cell; "
        "false, combinations without any are protected like others, or with noise-infusion look like others with the "
        "value 0",
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
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name) or len(name) > _LONGEST:
            raise ValueError(f"lower-case letters, digits, - and _ are allowed, at most {_LONGEST}")
        return name

    @field_validator("levels", mode="before")
    @classmethod
    def _accepts_numbers(cls, levels: object) -> object:
        listed = dict(pairs_of(levels))
        if not isinstance(levels, dict):
            return levels
        if single := [name for name in levels if name not in listed]:
            raise ValueError(f'`levels` of \'{single[0]}\' is a list, such as ["total", "{levels[single[0]]}"]')
        return {name: [str(one) for one in some] for name, some in listed.items()}

    @field_validator("wish")
    @classmethod
    def _can_be_understood(cls, wish: str | None) -> str | None:
        return None if wish is None else str(Wish.read(wish))

    @field_validator("by")
    @classmethod
    def _lists_each_once(cls, by: tuple[str, ...]) -> tuple[str, ...]:
        by = tuple(map(published_name, by))
        repeated = [name for name, times in Counter(by).items() if times > 1]
        if repeated:
            raise ValueError(f"'{repeated[0]}' is listed twice")
        return by

    @field_validator("where", mode="before")
    @classmethod
    def _accepts_one_code(cls, where: object) -> object:
        if not isinstance(where, dict):
            return where
        return {n: [codes] if isinstance(codes, str) else codes for n, codes in published_names(where).items()}

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
        if not self.establishments and not (self.count == "jobs" or self.statistic in ("indicators", "total", "mean")):
            raise ValueError(
                "`establishments = false` is for counts and totals of jobs and indicators: elsewhere the number is not "
                "published"
            )
        if not self.establishments and self.structural_zeros == "implied" and not is_free(self.protect.method):
            raise ValueError(
                "without the number of establishments every combination of codes is protected and a row: leave out "
                "`structural_zeros`, or `establishments = false`"
            )
        if self.nonnegative and self.count != "jobs":
            raise ValueError("`nonnegative` is for counts of jobs")
        if self.composite is not None and self.count != "jobs":
            raise ValueError("`composite` is for counts of jobs")
        if self.unknown_errors == "published" and self.statistic not in ("predict", "mean"):
            raise ValueError("`unknown_errors` is for predictions and means: other values have an error, or need none")
        exact = is_exact(self.protect.method)
        if self.totals and (not (self.of_records or exact) or self.at is not None):
            raise ValueError(
                "`totals` are for tables of records, but not for predictions and percentiles, and for true numbers"
            )
        return self

    @model_validator(mode="after")
    def _has_levels(self) -> Self:
        for name, levels in self.levels.items():
            if name not in self.by:
                raise ValueError(f"`levels` are of attributes in `by`, and '{name}' is not")
            if strange := [one for one in levels if AT in one and not one.startswith(f"{name}{AT}")]:
                raise ValueError(f"`levels` of '{name}' lists levels of '{name}', and '{strange[0]}' is none")
            if not levels or len({at_level(name, one).casefold() for one in levels}) < len(levels):
                raise ValueError(f"`levels` of '{name}' lists at least one level, and each once")
        self.each_level()
        return self

    def each_level(self) -> "tuple[Table, ...]":
        """The tables that are published: one of each combination of levels, and this one where it names none.

        >>> jobs = Table(name="jobs", count="jobs", by=("place", "industry"), protect=Protection(epsilon=Fraction(3)),
        ...              levels={"industry": ("total", "sector", "industry")})
        >>> [(table.name, table.by, str(table.protect.epsilon)) for table in jobs.each_level()][:2]
        [('jobs_by_place', ('place',), '1'), ('jobs_by_place_industry_sector', ('place', 'industry_sector'), '1')]
        """
        if not self.levels:
            return (self,)
        found = each_combination(self.by, self.levels)
        if not found:
            raise ValueError("`levels` leave out every attribute, and the grand total is no table: list a level")
        if long := [words for words in found if len(self.name + words) > _LONGEST - len("_by_")]:
            raise ValueError(
                f"'{self.name}_by_{long[0]}' has more than {_LONGEST} characters: shorten `name`, or levels"
            )
        spent = self.protect.each_spends(list(found))
        return tuple(
            self.model_validate(
                {
                    **dict(self),
                    "name": name_at_levels(self.name, words),
                    "title": self.title and title_at_levels(self.title, by),
                    "by": by,
                    "levels": {},
                    "protect": spent[words],
                }
            )
            for words, by in found.items()
        )

    @property
    def statistic(self) -> StatisticName:
        """Which of the statistics the table asks for."""
        return next(name for name in STATISTICS if getattr(self, name) is not None)

    @property
    def of_records(self) -> bool:
        """Whether the table is about records of businesses or a survey, and not about jobs."""
        return self.count == "records" or self.statistic in ("total", "mean", "growth", "predict", "quantiles")

    @property
    def measure(self) -> str | None:
        """The measure that the values are about; None counts."""
        if self.predict is not None:
            return self.predict.outcome
        if self.growth is not None:
            return self.growth.of
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
