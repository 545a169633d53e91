"""Candidates: the same release with other parameters, or with its tables under another method of protection."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sfumato.description import exact
from sfumato.errors import ReleaseError, SfumatoError
from sfumato.plan import Plan
from sfumato.privacy.guarantee import NO_ALPHA, plain
from sfumato.release import Release
from sfumato.sections import About, Budget
from sfumato.statistics.registry import METHODS, is_exact, is_free, is_keyed, options_of
from sfumato.statistics.table import FOR_TOTALS, FOR_UNITS, Protection, Table
from sfumato.toml import read_toml

AS_WRITTEN = "as written"
MOST_CANDIDATES = 20
"""More are no choice that anyone can look through, and each is worked out whole."""
_PLENTY = 10**6
"""A budget that nothing of a comparison is beyond: nothing is charged."""
_AMPLE = Fraction(100)
"""What tables spend for each epsilon of their share before it is known how many share what all of them cost."""
_OF_ALL = ("method", "epsilon", "alpha")
_RULES = (
    *("minimum_units", "minimum_count", "dominance", "p", "pq", "coalition", "zeros", "full", "levels"),
    *("cost", "seconds"),
)


def with_alpha(release: Release, alpha: Fraction | None) -> Release:
    """The release at another alpha of its budget, and of every table that names its own."""
    if alpha is None:
        return release
    budget = release.about.budget
    if budget is None or budget.alpha == NO_ALPHA:
        raise ReleaseError(
            "--alpha",
            expected="a budget with an alpha: within a factor of 1 + alpha sizes of an establishment look alike",
            found="none" if budget is None else 'definition = "individuals", where it plays no part',
            do="leave --alpha out",
        )
    tables = tuple(
        one
        if one.protect.alpha is None
        else one.model_copy(update={"protect": one.protect.model_copy(update={"alpha": alpha})})
        for one in release.tables
    )
    about = release.about.model_copy(update={"budget": budget.model_copy(update={"alpha": alpha})})
    return release.model_copy(update={"tables": tables, "about": about})


def with_epsilon(release: Release, plan: Plan, epsilon: Fraction) -> Release:
    """The release with all that it spends scaled, so that it costs so much together."""
    spent = plan.epsilon()
    if not spent:
        raise ReleaseError(
            "--epsilon",
            expected="a table or cube that spends a budget",
            found="only methods with a key, which have no epsilon",
            do="leave --epsilon out, and name a release file with other options by --beside",
        )
    times = epsilon / spent
    tables = tuple(one.model_copy(update={"protect": one.protect.scaled(times)}) for one in release.tables)
    return release.model_copy(update={"tables": tables, "cubes": tuple(one.scaled(times) for one in release.cubes)})


def refuse_too_many(number: int) -> None:
    """Refuse more candidates than anyone can look through."""
    if number > MOST_CANDIDATES:
        raise ReleaseError(
            "candidates",
            expected=f"at most {MOST_CANDIDATES}, of all release files, methods, epsilons and alphas together",
            found="more",
            do="look at fewer: the more there are to choose from, the more the choice reveals",
        )


def refuse_strange(
    option: str, numbers: Sequence[float | Fraction], *, what: str = "numbers", example: str = "0.1"
) -> None:
    """Refuse numbers that are not above 0, or have no end."""
    for number in numbers:
        if not 0 < number < inf:
            found = f"{number:g}" if isinstance(number, float) else str(number)
            raise ReleaseError(option, expected=f"{what} above 0", found=found, do=f"write {option} {example}, say")


# One method for all tables of a release.


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A method with its options, for all tables that it can protect; what is not said of a guarantee is as asked."""

    method: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    alpha: Fraction | None = None
    epsilon: Fraction | None = None
    """What all tables cost together."""
    name: str = ""
    tables: tuple[str, ...] = ()
    """Those it is for; all when not given."""
    by_default: bool = False
    """Whether nobody asked for it, so that it may be left out."""

    @classmethod
    def read(cls, said: "str | Mapping[str, Any] | Wanted") -> "Wanted":
        """What `--method` says, or a section of a file of candidates.

        >>> Wanted.read("rounding, base = 3").label
        'rounding, base 3'
        """
        if isinstance(said, Wanted):
            return said
        written = _parsed(said) if isinstance(said, str) else dict(said)
        where = f"--method {written.get('name') or written.get('method', '')}".strip()
        name, tables = written.pop("name", ""), written.pop("tables", ())
        listed = (tables,) if isinstance(tables, str) else tables
        if not isinstance(listed, list | tuple) or not all(isinstance(one, str) for one in listed):
            raise ReleaseError(
                where, expected="tables: a list of names", found=str(tables), do='write tables = ["jobs"], say'
            )
        method = written.pop("method", None)
        if not isinstance(method, str) or (method not in METHODS and method not in FOR_UNITS):
            if method is None and written:
                where = f"{where} with {', '.join(written)}"
            close = get_close_matches(str(method), list(METHODS), n=1)
            raise ReleaseError(
                where,
                expected=f"a method of protection, such as {', '.join(sorted(METHODS))}",
                found="none" if method is None else f"'{method}'",
                do=f"did you mean '{close[0]}'?" if close else "name one of these",
            )
        given: dict[str, Any] = {
            key: _number(where, key, written.pop(key)) for key in ("alpha", "epsilon") if key in written
        }
        known = {*options_of(method), *options_of(FOR_UNITS.get(method, method)), "form"}
        if strange := [key for key in written if key not in known]:
            close = get_close_matches(strange[0], [*known, *_OF_ALL], n=1)
            raise ReleaseError(
                where,
                expected=f"options of the method: {', '.join(sorted(known)) or 'it takes none'}",
                found=f"'{strange[0]}'",
                do=f"did you mean '{close[0]}'?" if close else "leave it out",
            )
        if given and is_free(method):
            raise ReleaseError(
                where,
                expected="neither alpha nor epsilon: the method has no formal guarantee",
                found=f"`{next(iter(given))}`",
                do="leave it out",
            )
        return cls(method=method, options=written, name=str(name), tables=tuple(listed), **given)

    @property
    def label(self) -> str:
        """What it is called; options of keyed methods are secrets."""
        if self.name:
            return self.name
        options = {} if is_keyed(self.method) else self.options
        told = {"alpha": self.alpha, "epsilon": self.epsilon}
        said = [f"{key} {plain(value)}" for key, value in told.items() if value is not None]
        return ", ".join([self.method, *said, *(f"{key} {_plain(value)}" for key, value in options.items())])

    def each(self, alphas: Sequence[Fraction], epsilons: Sequence[Fraction]) -> Iterator["Wanted"]:
        """The same at every alpha and epsilon, where it has a guarantee and does not say them itself."""
        if is_free(self.method):
            yield self
            return
        own = ([self.alpha] if self.alpha else alphas, [self.epsilon] if self.epsilon else epsilons)
        for alpha, epsilon in product(*own):
            several = self.name and len(own[0]) * len(own[1]) > 1
            name = f"{self.name}, alpha {plain(alpha)}, epsilon {plain(epsilon)}" if several else self.name
            yield replace(self, alpha=alpha, epsilon=epsilon, name=name)

    def on(self, table: Table, release: Release) -> Table:
        """A table under this method; what true numbers or noise cannot have is left out."""
        said: dict[str, Any] = {"method": self.method, **self.options}
        if not is_free(self.method):
            said |= {"epsilon": _AMPLE * (table.protect.epsilon or 1), "alpha": self.alpha}
        fitting: dict[str, Any] = {}
        if is_free(self.method):
            fitting = {"composite": None, "nonnegative": False, "parts": None}
        costs = not is_free(self.method)
        if costs or (release.data.of_jobs and not is_exact(self.method)) or self.method == "coarsening":
            fitting["totals"] = False  # cells are compared, and readers of noisy ones add them up
        return Table.model_validate({**dict(table), **fitting, "protect": Protection(**said)})

    def abouts(self, release: Release) -> Iterator[About]:
        """First sections of the release with a budget for this method: of the strongest definition, and of others."""
        for budget in (None,) if is_free(self.method) else _budgets(release, self.alpha):
            yield release.about.model_copy(update={"budget": budget, "earlier": ()})


def _budgets(release: Release, alpha: Fraction | None) -> Iterator[Budget]:
    """Budgets that fit what is asked: of the definition that the release has, or of those that there are."""
    own = release.about.budget
    if own is not None:
        changed = {"epsilon": Fraction(_PLENTY)} | ({"alpha": alpha} if alpha and own.alpha != NO_ALPHA else {})
        yield own.model_copy(update={**changed, "window": None})
        return
    limited = [name for name, one in release.data.measures.items() if (one.cap if release.data.of_jobs else one.floor)]
    of_workers = any(not release.data.is_known(name) for one in release.tables for name in (*one.by, *one.where))
    jobs = "weak" if of_workers else "strong"
    definition = jobs if release.data.of_jobs else "units" if limited else "individuals"
    said = {"alpha": alpha or Fraction(1, 10), "epsilon": _PLENTY, "totals": limited}
    yield Budget.model_validate(said | {"definition": definition})
    if definition != "individuals":  # the release promises nothing yet that this would fall short of
        yield Budget.model_validate({**said, "definition": "individuals", "totals": []})


def by_default(release: Release) -> list[Wanted]:
    """What is compared unless methods are named: one of each way to protect counts and totals."""
    exact_tables = [one.protect for one in release.tables if is_exact(one.protect.method)]
    said = exact_tables[0].options if exact_tables else {}
    rules = {key: value for key, value in said.items() if key in _RULES and key not in ("cost", "seconds")}
    rules = rules or {"minimum_units": 3, "p": 15}
    keyed = ("noise-infusion",) if release.data.of_jobs else FOR_TOTALS
    formal = ("smooth-pareto",) if release.data.of_jobs else ("smooth-pareto", "laplace")
    found = [Wanted(method=name) for name in (*formal, *keyed)]
    if not all(one.protect.method == "suppression" for one in release.tables):  # whose rules are the office's own
        found.append(Wanted(method="suppression", options=rules))
    found.append(Wanted(method="rounding", options={"base": 5}))
    asked = {name for one in release.tables for name in one.by}
    if any((one.level_of or ("",))[0] in asked for one in release.data.attributes.values()):
        bare = {key: value for key, value in rules.items() if key not in ("zeros", "full")}
        found.append(Wanted(method="coarsening", options=bare))
    same = [one.protect for one in release.tables]
    return [
        replace(one, by_default=True)
        for one in found
        if not (is_free(one.method) and all(_is_same(protect, one) for protect in same))
    ]


def _is_same(protect: Protection, wanted: Wanted) -> bool:
    """Whether a table is protected so already; a keyed method at its defaults is compared as the release has it."""
    return protect.method == wanted.method and (is_keyed(wanted.method) or protect.options == dict(wanted.options))


def candidates_in(path: Path) -> list[Wanted]:
    """The candidates that a file lists, one a section `[[candidate]]`."""
    _, content = read_toml(path, what="a file of candidates")
    listed = content.get("candidate")
    sections = isinstance(listed, list) and all(isinstance(one, dict) for one in listed)
    if not isinstance(listed, list) or not sections or set(content) != {"candidate"}:
        raise ReleaseError(
            f"--candidates {path}",
            expected="sections [[candidate]], each with a `method`, its options and perhaps a `name` and `tables`",
            found=", ".join(map(str, content)) or "an empty file",
            do='write [[candidate]], and below it method = "suppression" and minimum_units = 3, say',
        )
    return [Wanted.read(one) for one in listed]


def _parsed(text: str) -> dict[str, Any]:
    """`suppression, p = 15, minimum_units = 3` as the same keys in a release file."""
    method, _, options = text.partition(",")
    try:
        found = tomllib.loads(f"_ = {{ {options.strip()} }}", parse_float=Decimal)["_"]
    except tomllib.TOMLDecodeError as error:
        raise ReleaseError(
            "--method",
            expected="a method and its options as a release file has them: 'suppression, minimum_units = 3, p = 15'",
            found=f"'{text}'" if not is_keyed(method.strip()) else "another text",
            do="correct the options: key = value, with commas between them",
        ) from error
    return {"method": method.strip(), **found}


def _number(where: str, key: str, value: Any) -> Fraction:
    try:
        found: Fraction = exact(value)
    except ValueError:
        found = Fraction(0)
    if found <= 0:
        raise ReleaseError(where, expected=f"{key} above 0", found=str(value), do=f"write {key} = 0.1, say")
    return found


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "/".join(map(_plain, value))
    return str(value)


# Why a table cannot be protected so.


def why_not(error: SfumatoError | ValidationError) -> str:
    """The reason in one sentence, without what to do about a file that nobody has written."""
    if isinstance(error, ValidationError):
        return str(error.errors()[0]["msg"]).removeprefix("Value error, ")
    return f"it needs {error.expected}, and has {error.found}"
