"""Attributes that classify tables and measures that are added up: columns, what is made of them, and their codes."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from sfumato.description import Described, Exact
from sfumato.errors import ReleaseError
from sfumato.frame.codelists import NO_CODES, Codelist, CodelistFile
from sfumato.frame.levels import refuse_incomplete
from sfumato.geography.read import MapFile

PUBLISHED_COLUMNS = ("value", "error", "low", "high", "establishments", "status", "convergence_ratio", "indicator")
"""Columns of every published table; an attribute cannot have one of these names."""
OTHERS = "*"
"""Stands for all codes that a recode does not name."""
_SHOWN = 12
"""So many codes are named in words."""


def _publishable(name: str) -> str:
    """Refuse a name that no column of a published table can have."""
    if name in PUBLISHED_COLUMNS:
        raise ValueError(f"'{name}' is a column of every published table; rename the attribute or measure")
    if not re.fullmatch(r"[^\W_][\w -]*", name):
        raise ValueError(
            f"'{name}' is no name that can be published: a letter or digit, then letters, digits, blanks, _ or "
            f'-; give it another one and say where it is: column = "{name}"'
        )
    return name


PublishedName = Annotated[str, AfterValidator(_publishable)]


class Attribute(Described):
    """A column that can classify a table; its codes are public even where its values are confidential."""

    label: str = Field("", description="words for people; made from the name when not given")
    codelist: CodelistFile | None = Field(
        None,
        description="file with the codes and their labels: a path, or { file = …, level = 2 } and further options",
    )
    codes: Codelist | None = Field(None, description="the codes in order, as a list or as code = label")
    origin_of: str | None = Field(
        None,
        exclude=True,  # it changes no number
        description="of where workers come from: the attribute of workplaces, with the same codes, that they go to; a "
        "table by both has flows",
    )
    map: MapFile | None = Field(
        None,
        exclude=True,  # it changes no number
        description="file with the areas of the codes, which the page shows as a map; attributes of one file can be "
        "origin and destination",
    )
    most_workers: dict[str, int] | None = Field(
        None,
        min_length=1,
        exclude=True,  # it changes no number but errors
        description="of public classes of size: the most workers that an establishment with a code has, such as { "
        '"1-9" = 9 }, which makes published errors smaller; a code that is not named has no limit',
    )
    column: str = Field("", description="column of the file, whatever it is called; the name when not given")
    digits: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="makes codes of the first so many characters of the column, such as 2 of NACE codes",
    )
    classes: dict[str, Exact] | None = Field(
        None,
        min_length=1,
        description='makes codes of numbers: each code with the least number of its class, such as { "0-9" = 0, "10+" '
        "= 10 }",
    )
    empty: str | None = Field(
        None,
        min_length=1,
        description="code of rows that have none; without it such rows are refused. A codelist that lacks it has it "
        "added, at the end",
    )
    recode: dict[str, tuple[str, ...]] | None = Field(
        None,
        min_length=1,
        description='makes one code of several, such as { production = ["B", "C"], other = ["*"] }; with `digits`, '
        "those of the first characters",
    )
    levels: dict[str, dict[str, tuple[str, ...]]] | None = Field(
        None,
        min_length=1,
        description="coarser codes, by level, each with the own codes in it, such as { sector = { goods = "
        '["01", "10"], services = ["62"] } }; a table is by = ["industry@sector"]. A codelist with parents has levels '
        "by itself",
    )
    groups: dict[str, tuple[str, ...]] | None = Field(
        None, description="of a level, the codes of the attribute in each own one; not written itself"
    )
    level_of: tuple[str, str] | None = Field(
        None, description="of a level, the attribute and the level; not written itself"
    )

    @field_validator("codes", mode="before")
    @classmethod
    def _read_codes(cls, codes: Any) -> Any:
        return codes if codes is None or isinstance(codes, Codelist) else Codelist.of(codes)

    @field_validator("recode", mode="before")
    @classmethod
    def _takes_one_code(cls, recode: Any) -> Any:
        """A single code needs no brackets."""
        one = isinstance(recode, dict)
        return {new: [old] if isinstance(old, str) else old for new, old in recode.items()} if one else recode

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if self.codelist is not None and self.codes is not None:
            raise ValueError("give either `codelist` (a file) or `codes`, not both")
        other = "digits" if self.digits is not None else "recode" if self.recode is not None else None
        if self.classes is not None and other is not None:
            raise ValueError(f"`classes` make codes of numbers, and `{other}` of texts: give one of them")
        starts = list((self.classes or {}).values())
        if starts != sorted(set(starts)):
            raise ValueError("`classes` go up: each begins with a larger number than the one before")
        return self

    @field_validator("most_workers")
    @classmethod
    def _has_workers(cls, most: dict[str, int] | None) -> dict[str, int] | None:
        if wrong := [code for code, number in (most or {}).items() if not 1 <= number <= 10**9]:
            raise ValueError(f"`most_workers` are whole numbers from 1 on, and not so for '{wrong[0]}'")
        return most

    @model_validator(mode="after")
    def _recodes_each_code_once(self) -> Self:
        recode = self.recode or {}
        named = [old for codes in recode.values() for old in codes]
        if len(set(named)) != len(named):
            raise ValueError("`recode` names each code of the column once, and '*' for all others once")
        if not all(recode.values()) or "" in named:
            raise ValueError("`recode` has at least one code of the column for every new one; `empty` is for none")
        long = [old for old in named if self.digits is not None and old != OTHERS and len(old) > self.digits]
        if long:
            raise ValueError(
                f"`digits` leaves {self.digits} characters of every code, so that nothing is '{long[0]}' in `recode`"
            )
        if self._made_codes():
            Codelist.of(list(self._made_codes()))  # refuses what cannot be a code
        if self.codes is not None:
            self._refuse_missing(self.codes, *filter(None, [None if self.groups else self.empty]))
        if self.codelist is None:
            known = self._made_codes() if self.codes is None else self.codes.codes
            refuse_incomplete(self.levels or {}, known or None, but=self.empty)
        return self

    def _made_codes(self) -> tuple[str, ...]:
        """The codes that the rules make, in order, where they tell all of them."""
        made = tuple(self.groups or self.classes or self.recode or ())
        added = made and self.groups is None and self.empty is not None and self.empty not in made
        return (*made, str(self.empty)) if added else made

    def _refuse_missing(self, codes: Codelist, *others: str) -> None:
        made = (*(self.groups or self.classes or self.recode or ()), *others)
        if missing := [code for code in made if code not in codes.codes]:
            raise ValueError(f"'{missing[0]}' is made of the column, and is none of the codes: add it to them")

    @property
    def tells_codes(self) -> bool:
        """Whether its codes are known from the release file, and need not be read off the data."""
        return any(given is not None for given in (self.codelist, self.codes, self.classes, self.recode, self.groups))

    @property
    def known_codes(self) -> tuple[object, ...]:
        """What tells its codes: the same for two attributes that have the same ones."""
        return self.codelist, self.codes, None if self.codelist or self.codes else self._made_codes()

    def declared(self, folder: Path) -> Codelist | None:
        """The codes that the release file gives, in a file, as a list, or by what they are made of."""
        if self.codelist is not None:
            found = self.codelist.read(folder)
            try:
                self._refuse_missing(found)
                refuse_incomplete(self.levels or {}, found.codes, but=self.empty)
            except ValueError as error:
                raise ReleaseError(
                    f"codelist {self.codelist.file}",
                    expected="every code that `classes` and `recode` make, and in every level each of its codes",
                    found=str(error),
                    do="add it to the file, or correct the rule",
                ) from error
            # An official list has no code for what is missing, and nobody edits it for one release.
            return found if self.empty is None else found.with_unknown(self.empty)
        made = self._made_codes()
        return self.codes if self.codes is not None or not made else Codelist.of(list(made))

    def derivation(self) -> dict[str, Any]:
        """What makes its codes out of the column, if anything does, alike however it is written."""
        rules = {
            "digits": self.digits,
            "classes": None if self.classes is None else {code: str(least) for code, least in self.classes.items()},
            "recode": None if self.recode is None else {new: sorted(old) for new, old in self.recode.items()},
            "empty": self.empty,
        }
        return {name: rule for name, rule in rules.items() if rule is not None}

    def counted_in(self, folder: Path) -> tuple[tuple[str, str], ...]:
        """The codes that are counted in one above them in the codelist or the level, each with that one."""
        if self.groups is not None:
            return tuple((code, upper) for upper, codes in self.groups.items() for code in codes)
        ruled = self.codelist is None or self.classes is not None or self.recode is not None
        return () if ruled else (self.declared(folder) or NO_CODES).below

    def codes_above(self, finer: "Attribute", codes: Iterable[str], folder: Path) -> Mapping[str, str] | None:
        """The own code that each of some codes of a finer attribute of the column lies in; None if none follows.

        Both attributes make something of each text in the column, and then count that in a code of theirs. A code of
        the finer one lies in the code that all texts counted in it are counted in here.
        """
        rules = [(one.classes, one.recode, one.empty) for one in (self, finer)]
        alike = self.digits == finer.digits
        cut = self.digits is not None and self.recode is None and finer.has_digits(self.digits)
        if rules[0] != rules[1] or not (alike or cut):
            return None
        listed, counted = self.declared(folder), dict(self.counted_in(folder))
        own = None if listed is None else counted | {code: counted.get(code, code) for code in listed.codes}
        texts: dict[str, list[str]] = {}
        for text, code in finer.counted_in(folder):
            texts.setdefault(code, []).append(text)
        above = {}
        for code in codes:
            here = texts.get(code, []) if finer.groups else [code, *texts.get(code, [])]
            made = [text if alike or text == self.empty else text[: self.digits] for text in here]
            uppers = {text if own is None else own.get(text) for text in made}
            # Rows with texts that are counted nowhere here are refused, so that they hold nothing.
            if len(known := uppers - {None}) != 1:
                return None
            above[code] = str(known.pop())
        return above

    def has_digits(self, digits: int) -> bool:
        """Whether its codes have at least so many characters of the column, or all of them."""
        return self.digits is None or self.digits >= digits

    def in_words(self, name: str, *, above: bool = False) -> str:
        """What makes its codes out of the column, in words; empty where the column has them.

        Above: whether codes are counted in those above them in the codelist.

        >>> Attribute(column="N.EMP", classes={"0-9": 0, "10+": 10}).in_words("size")
        "classes of the numbers in column 'N.EMP': 0-9 from 0, 10+ from 10"
        """
        column = f"column '{self.column or name}'"
        words = f"the codes in {column}"
        if self.digits is not None:
            words = f"the first {'character' if self.digits == 1 else f'{self.digits} characters'} of {words}"
        if self.classes is not None:
            words = f"classes of the numbers in {column}: "
            words += ", ".join(f"{code} from {_shown(least)}" for code, least in self.classes.items())
        if self.recode is not None:
            words += " put together: " + "; ".join(f"{new} of {_listed(old)}" for new, old in self.recode.items())
        if self.groups is not None:
            words += " put together: " + "; ".join(f"{new} of {_listed(old)}" for new, old in self.groups.items())
        elif above and self.codelist is not None:
            words += f", each counted in the code above it in {self.codelist.in_words}"
        if self.empty is not None:
            words += f"{';' if self.recode else ','} {self.empty} where there is none"
        return words if self.derivation() or above else ""


def _shown(number: Fraction) -> str:
    exact = Decimal(number.numerator) / Decimal(number.denominator)
    return f"{exact:f}" if Fraction(exact) == number else str(number)


def _listed(old: tuple[str, ...]) -> str:
    named = [code for code in old if code != OTHERS]
    shown = named if len(named) <= _SHOWN else [*named[:_SHOWN], f"{len(named) - _SHOWN} more"]
    return ", ".join([*shown, *(["all others"] if OTHERS in old else [])])


MOST_CAP = 10**12
"""Of caps and floors in totals, so that scales of noise fit 64 bits with every alpha."""


class Measure(Described):
    """A number of a job, a whole count of its smallest unit, within bounds."""

    label: str = Field("", description="words for people; the name when not given")
    column: str = Field("", description="column of the file, whatever it is called; the name when not given")
    unit: str = Field(
        "",
        description="what one is in what is published, such as dollars a year; with a `factor` the smallest unit, such "
        "as cents",
    )
    factor: int = Field(
        1,
        ge=1,
        le=10**9,
        description="how many of the smallest unit one in the file is: 100 where it has euros such as 12.34, and cents "
        "are counted, in bounds too; what is then no whole number is refused",
    )
    rounded: int = Field(
        1,
        ge=1,
        le=10**12,
        description="to multiples of what most values are rounded, in the smallest unit: 100 where people tell "
        "earnings in hundreds; percentiles of people are then of rounded values, with errors that hold for them",
    )
    fractions: Literal["refuse", "round"] = Field(
        "refuse",
        description="whether amounts that are no whole numbers of the smallest unit are refused, or rounded to the "
        "nearest, a half away from 0: for results of formulas, such as 33.333",
    )
    empty: int | None = Field(
        None,
        description="what rows without an amount count as, in the smallest unit, such as 0 where who is not employed "
        "has no earnings; without it such rows are refused, also those that `where` leaves out",
    )
    minimum: Exact = Field(Fraction(0), description="least value that is allowed")
    maximum: Exact | None = Field(None, description="greatest value that is allowed; no limit when not given")
    outside: Literal["refuse", "clip"] = Field(
        "refuse",
        description="whether rows with a value outside the bounds are refused before anything is charged, or count "
        "with the nearest bound (winsorising), in predictions, means, percentiles and formal totals of people",
    )
    cap: int | None = Field(
        None,
        ge=1,
        le=MOST_CAP,
        exclude=True,  # it is part of what a total asks, and decides nothing of what is read or refused
        description="the most that one job counts for in totals of jobs with a guarantee, in the smallest unit: what "
        "is above is cut off. A number that is known without the data, such as a ceiling of the law",
    )
    floor: int | None = Field(
        None,
        ge=1,
        le=MOST_CAP,
        exclude=True,  # as the cap
        description="of records, the amount up to which a unit is hidden whole in totals and means with a guarantee, "
        "in the smallest unit; nothing is cut. A number that is known without the data",
    )

    def derivation(self) -> dict[str, Any]:
        """What makes its amounts out of the column, if anything does."""
        rules = {"factor": self.factor, "fractions": self.fractions, "empty": self.empty}
        return {name: rule for name, rule in rules.items() if rule != type(self).model_fields[name].default}
