"""A `[[cube]]` section: which attributes make the cube, its noise, its controls, and what may be read off it."""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from sfumato.agree.whole_numbers import make_a_chain
from sfumato.description import Described, Exact
from sfumato.errors import ReleaseError
from sfumato.frame.records import MOST_RECORDS, Microdata, UnitLimit

AVERAGE = "average"
COUNT, WEIGHTED = "count", "weighted"
"""The columns of a cube, in millionths, beside those of its measures; without weights the count is all there is."""
MEASURE_PARTS = 1_000
"""Measures times weights are kept in thousandths: their sums are larger than those of weights."""


def table_name(by: Sequence[str]) -> str:
    """What messages and statements call a table by some attributes.

    >>> table_name(("region", "job")), table_name(())
    ('region × job', 'grand total')
    """
    return " × ".join(by) or "grand total"


def _listed_once(names: tuple[str, ...]) -> tuple[str, ...]:
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise ValueError(f"'{repeated[0]}' is listed twice")
    return names


class ControlSection(Described):
    """A table of lower dimension that is measured by itself, and that the cube is made to add up to."""

    by: tuple[str, ...] = Field(description="attributes of the cube; none for the grand total")
    epsilon: Exact | None = Field(None, description="what this table spends of the budget, beside the cube")
    cap: int | None = Field(
        None, description="the most by which one of its cells is changed; when not given, the least with a δ not above "
        "the cube's"
    )  # fmt: skip
    exact: bool = Field(
        False, description="take the table as it is, without noise: it is disclosed, and the statement says so"
    )
    totals: Path | None = Field(
        None,
        description="file of totals that are public already, CSV or Parquet: a row for each combination of codes with "
        "the columns `count`, `weighted` (of records with weights) or both; taken as they are, at no cost",
    )
    source: str = Field(
        "", description="where these totals come from, for the statement; the name of the file when not given"
    )

    @field_validator("by")
    @classmethod
    def _lists_each_once(cls, by: tuple[str, ...]) -> tuple[str, ...]:
        return _listed_once(by)

    @model_validator(mode="after")
    def _is_noisy_or_exact(self) -> Self:
        if [self.epsilon is not None, self.exact, self.totals is not None].count(True) != 1:
            raise ValueError("a control has an `epsilon`, `exact = true` or a file of `totals`, one of them")
        if self.source and self.totals is None:
            raise ValueError("`source` tells where `totals` come from, and is for these only")
        if self.epsilon is not None and self.epsilon <= 0:
            raise ValueError("an epsilon above 0 is needed")
        if self.cap is not None and (self.epsilon is None or self.cap < 1):
            raise ValueError("a cap of 1 or more is needed, and none for a control without noise")
        return self

    @property
    def name(self) -> str:
        """What messages and statements call the table."""
        return table_name(self.by)


class SamplingSection(Described):
    """How sampling variances depend on totals, known from elsewhere: square·θ² + linear·θ for a weighted total θ."""

    square: Exact = Field(Fraction(0), description="the part that grows with the squared total")
    linear: Exact = Field(description="the part that grows with the total")

    @field_validator("square", "linear")
    @classmethod
    def _is_a_variance(cls, part: Fraction) -> Fraction:
        if part < 0:
            raise ValueError("a number from 0 on is needed")
        return part


class RulesSection(Described):
    """When figures of unprotected data may be published: the rules that were in force before noise was added."""

    least_count: int = Field(0, ge=0, description="not figures based on fewer records")
    least_weighted: Exact = Field(Fraction(0), ge=0, description="not figures based on a smaller weighted count")
    largest_cv: Exact | None = Field(None, description="not figures with a larger coefficient of variation")


class CubeSection(Described):
    """A `[[cube]]` section: records counted in all combinations of some attributes, protected as a whole."""

    name: str = Field(description="file name in the bundle: lower-case letters, digits, - and _")
    title: str = Field("", description="heading of the cube; the name when not given")
    by: tuple[str, ...] = Field(min_length=1, description="the attributes whose combinations of codes are the cells")
    epsilon: Exact = Field(description="what the cells of the cube spend of the budget; controls come on top")
    cap: int = Field(description="the most records by which a cell is changed; it decides δ")
    sensitivity: Literal["record", "weight"] = Field(
        "record",
        description="record: the guarantee is for counts of records, and weighted counts get as much noise in units of "
        "the average weight; weight: weighted counts, in whole units, get noise of their own for the largest weight, "
        "which costs epsilon and every control's epsilon once more",
    )
    largest_weight: int | None = Field(
        None, description="for sensitivity = weight: no record may weigh more; it is public and not read off the data"
    )
    weight_unit: int = Field(
        1, description="for sensitivity = weight: every weight is rounded to a multiple of this first"
    )
    weights: str = Field(
        AVERAGE, description="the average weight that scales the noise: average, over all records; or an attribute of "
        "the cube, within each of its codes"
    )  # fmt: skip
    protects: Literal["record", "unit"] = Field(
        "record",
        description="record: the noise hides one record; unit: it hides all records of one unit of the last of "
        "`levels`, such as an establishment, of which at most `most_records` are counted",
    )
    most_records: int | None = Field(
        None,
        description="for protects = unit: how many records of a unit are counted at most, chosen by the key of the "
        "release; all numbers of the cube are about these. The noise is as many times as large as that of one record",
    )
    draws: Literal["own", "shared"] = Field(
        "own",
        description="own: every column has noise of its own; shared: as Li and Krenzke (2020) have it, weighted counts "
        "get the noise of the counts times the average weight. Both together then tell the data, so the cube has no "
        "formal guarantee and is for comparison",
    )
    approach: Literal["bottom-up", "several-levels"] = Field(
        "bottom-up",
        description="bottom-up: epsilon is for the cells of the cube; several-levels: it is for the cube and its "
        "`levels` together, and what they tell is combined, by least squares",
    )
    levels: tuple[tuple[str, ...], ...] = Field(
        (), description="for approach = several-levels: tables of lower dimension that are measured, too, each by some "
        "attributes of the cube; `sfumato check` says which pay off"
    )  # fmt: skip
    levels_share: Exact = Field(
        Fraction(3, 10), description="for approach = several-levels: the share of epsilon that all levels get, "
        "each as much"
    )  # fmt: skip
    controls: tuple[ControlSection, ...] = Field(
        (), description="tables of lower dimension that the cube is made to add up to"
    )
    calibration: Literal["least-squares", "raking"] = Field(
        "least-squares", description="how it is made to: by the smallest quadratic change, or by multiplying"
    )
    nonnegative: bool = Field(False, description="leave no cell below 0, at the price of a bias")
    empty_cells: Exact = Field(
        Fraction(1),
        description="share of empty cells that get noise, drawn by chance before it; below 1 less noise adds up, and "
        "epsilon rises, the more the more columns the cube has",
    )
    measures: tuple[str, ...] = Field((), description="measures whose weighted means can be asked of the cube")
    sampling: SamplingSection | None = Field(
        None, description="for sensitivity = weight: parameters of the sampling variance, such as those of an earlier "
        "survey; fitted to these data they would tell about single records, so without them no sampling error is told"
    )  # fmt: skip
    least_count: int = Field(
        0, ge=0, description="the query tool marks figures based on fewer records, by their noisy count"
    )
    largest_cv: Exact | None = Field(
        None, description="it also marks figures with a larger coefficient of variation, such as 0.3"
    )
    least_weighted: Exact = Field(
        Fraction(0), ge=0, description="it also marks figures based on a smaller weighted count, by the noisy one"
    )
    identifying: tuple[str, ...] = Field(
        (),
        description="attributes that an intruder may know of a record, such as its occupation: the confidential report "
        "tries to learn the others; when not given, those with most codes, one after the other",
    )
    rules_before: RulesSection | None = Field(
        None,
        description="the rules for figures without noise, such as { least_count = 30, largest_cv = 0.2 }: the "
        "confidential report counts what becomes publishable under the rules above; the same rules when not given",
    )

    @field_validator("name")
    @classmethod
    def _names_a_file(cls, name: str) -> str:
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name):
            raise ValueError("lower-case letters, digits, - and _ are allowed, at most 64")
        return name

    @field_validator("by", "measures", "identifying")
    @classmethod
    def _lists_each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return _listed_once(names)

    @field_validator("epsilon")
    @classmethod
    def _spends(cls, epsilon: Fraction) -> Fraction:
        if epsilon <= 0:
            raise ValueError("an epsilon above 0 is needed")
        return epsilon

    @field_validator("cap")
    @classmethod
    def _changes_something(cls, cap: int) -> int:
        if cap < 1:
            raise ValueError("a cap of 1 or more is needed: with a cap of 0 nothing would be protected")
        return cap

    @field_validator("levels")
    @classmethod
    def _lists_each_level_once(cls, levels: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        for by in levels:
            _listed_once(by)
        _listed_once(tuple(table_name(sorted(by)) for by in levels))
        return levels

    @field_validator("levels_share")
    @classmethod
    def _leaves_something_for_the_cube(cls, share: Fraction) -> Fraction:
        if not 0 < share < 1:
            raise ValueError("a share above 0 and below 1 is needed")
        return share

    @field_validator("empty_cells")
    @classmethod
    def _is_a_share(cls, share: Fraction) -> Fraction:
        if not 0 < share <= 1:
            raise ValueError("a share above 0 and up to 1 is needed")
        return share

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for control in self.controls:
            unknown = [name for name in control.by if name not in self.by]
            if unknown:
                raise ValueError(
                    f"a control by attributes of the cube ({', '.join(self.by)}), and not by '{unknown[0]}': put it "
                    "into the cube, or leave it out of the control"
                )
        repeated = [names for names, times in Counter(frozenset(c.by) for c in self.controls).items() if times > 1]
        if repeated:
            raise ValueError(f"two controls are by {', '.join(sorted(repeated[0])) or 'nothing'}: leave out one")
        if (self.sensitivity == "weight") != (self.largest_weight is not None):
            raise ValueError('`largest_weight` is needed with sensitivity = "weight", and with that only')
        if self.weight_unit < 1 or (self.weight_unit != 1 and self.sensitivity != "weight"):
            raise ValueError('`weight_unit` is 1 or more, and for sensitivity = "weight"')
        if self.largest_weight is not None and self.largest_weight < self.weight_unit:
            raise ValueError("a largest weight of 1 or more is needed, and not less than `weight_unit`")
        if self.weights != AVERAGE and (self.weights not in self.by or self.sensitivity == "weight"):
            raise ValueError(
                f'`weights` is "{AVERAGE}" or an attribute of the cube, and "{AVERAGE}" with sensitivity = "weight"'
            )
        apart = [control.name for control in self.controls if self.stratum not in (None, *control.by)]
        if apart:
            raise ValueError(
                f"with weights = '{self.stratum}' every control has '{self.stratum}', too, and '{apart[0]}' has not: "
                "noise that differs between its codes cannot be spread over all of them"
            )
        if self.sampling is not None and self.sensitivity != "weight":
            raise ValueError(
                '`sampling` is for sensitivity = "weight": otherwise it is fitted to the replicate weights'
            )
        if self.draws == "shared" and (self.sensitivity == "weight" or self.levels or self.measures):
            raise ValueError(
                'draws = "shared" is for counts and weighted counts alone, with sensitivity = "record" and approach = '
                '"bottom-up"'
            )
        if self.measures and self.sensitivity == "weight":
            raise ValueError('`measures` are for sensitivity = "record": nothing bounds what one record adds to them')
        if self.nonnegative and self.calibration == "raking":
            raise ValueError('`nonnegative` is for calibration = "least-squares"')
        return self

    @model_validator(mode="after")
    def _hides_units_that_have_a_limit(self) -> Self:
        if (self.protects == "unit") != (self.most_records is not None):
            raise ValueError('`most_records` is needed with protects = "unit", and with that only')
        if self.most_records is None:
            return self
        if not 2 <= self.most_records <= MOST_RECORDS:
            raise ValueError(
                f"`most_records` from 2 to {MOST_RECORDS:,} is needed: where one record of a unit is counted, a new "
                "one may take its place, and these are two steps"
            )
        if self.draws == "shared" or any(control.exact for control in self.controls):
            raise ValueError(
                'protects = "unit" goes with draws = "own", and without exact controls: what has no noise hides no unit'
            )
        return self

    @model_validator(mode="after")
    def _leaves_something_to_learn(self) -> Self:
        if self.identifying and not set(self.identifying) < set(self.by):
            raise ValueError(
                f"`identifying` are some attributes of the cube ({', '.join(self.by)}), and not all: what is left is "
                "what intruders want to learn"
            )
        return self

    @model_validator(mode="after")
    def _measures_levels_that_fit_together(self) -> Self:
        if (self.approach == "several-levels") != bool(self.levels):
            raise ValueError('`levels` are needed with approach = "several-levels", and with that only')
        for by in self.levels:
            unknown = [name for name in by if name not in self.by]
            if unknown or len(by) == len(self.by):
                raise ValueError(
                    f"a level by some attributes of the cube, and not all ({', '.join(self.by)}), instead of "
                    f"'{unknown[0] if unknown else table_name(by)}'"
                )
        if not self.levels:
            return self
        others = (self.controls, self.calibration != "least-squares", self.stratum, self.empty_cells < 1)
        if any(others):
            raise ValueError(
                'approach = "several-levels" goes without `controls`, `weights`, `empty_cells` and `calibration`'
            )
        if self.nonnegative and not make_a_chain([tuple(sorted(map(self.by.index, by))) for by in self.levels]):
            raise ValueError(
                "with nonnegative = true, levels that do not close a ring (such as a × b, b × c, a × c): no whole "
                "numbers may fit them all"
            )
        return self

    def scaled(self, times: Fraction) -> "CubeSection":
        """The same with so many times the epsilon, of its cells and of every control that spends some."""
        controls = tuple(
            one if one.epsilon is None else one.model_copy(update={"epsilon": one.epsilon * times})
            for one in self.controls
        )
        return self.model_copy(update={"epsilon": self.epsilon * times, "controls": controls})

    def with_levels_as_controls(self) -> "CubeSection":
        """The same cube where every level is a control with its part of epsilon, and the cube has the rest."""
        if not self.levels:
            return self
        each = self.epsilon * self.levels_share / len(self.levels)
        controls = tuple(ControlSection.model_validate({"by": by, "epsilon": each}) for by in self.levels)
        return self.model_copy(update={"epsilon": self.epsilon * (1 - self.levels_share), "controls": controls})

    @property
    def in_whole_numbers(self) -> bool:
        """Whether its numbers are whole records, or whole averages, and none is negative."""
        return bool(self.levels) and self.nonnegative

    @property
    def stratum(self) -> str | None:
        """The attribute within whose codes weights are averaged; None over all records."""
        return None if self.weights == AVERAGE else self.weights

    def limit(self, data: Microdata) -> UnitLimit | None:
        """The most records of a unit that are counted: of the largest units that are named, which hold the others."""
        return None if self.most_records is None else data.unit_limit(self.most_records)

    def know(self, data: Microdata) -> None:
        """Refuse attributes and measures that the data do not have, or that are called like a column of cubes."""
        for kind, names, known in (
            ("attribute", self.by, list(data.attributes)),
            ("measure", self.measures, list(data.measures)),
        ):
            for name in names:
                if name not in known:
                    close = get_close_matches(name, known, n=1)
                    raise ReleaseError(
                        f"cube '{self.name}'",
                        expected=f"one of the {kind}s: {', '.join(known) or 'none is described'}",
                        found=f"'{name}'",
                        do=f"did you mean '{close[0]}'?" if close else f"describe it under [data.{kind}s]",
                    )
                if name in (COUNT, WEIGHTED):
                    raise ReleaseError(
                        f"cube '{self.name}'",
                        expected=f"names other than {COUNT} and {WEIGHTED}, which are columns of cubes",
                        found=f"'{name}'",
                        do="rename the column",
                    )
        negative = [name for name in self.measures if data.measures[name].minimum < 0]
        if negative:
            raise ReleaseError(
                f"cube '{self.name}', measure '{negative[0]}'",
                expected="a measure that is never negative: its average is the scale of its noise",
                found="one with a minimum below 0",
                do="leave it out of the cube",
            )
