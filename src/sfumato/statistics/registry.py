"""The methods a release file can name, those of other packages among them, and what they protect."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin

from sfumato.errors import ReleaseError, SfumatoError
from sfumato.method import OF_TABLE, Method, MethodClass
from sfumato.privacy.guarantee import Definition, Guarantee, totals_in
from sfumato.statistics.jobs.question import COLUMNS, THRESHOLD

# What a guarantee protects: the three requirements of employer-employee data, as a table.

Answer = Literal["yes", "no", "weak attackers", "pay alike"]


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """Whether individuals, the size of an employer and the shape of its workforce are protected."""

    individuals: Answer
    employer_size: Answer
    employer_shape: Answer
    values: Answer = "no"
    """Of units such as businesses, of which nothing else is told."""

    def facts(self) -> dict[str, str]:
        """The answers by name; that about units only where it is one."""
        return {name: answer for name, answer in vars(self).items() if name != "values" or answer == "yes"}

    def __str__(self) -> str:
        if self.values == "yes":
            return "values of units"
        if self.individuals == "no":
            return "nothing provably"
        if self.employer_size == "pay alike":
            return "persons, size and shape (where what is added up grows alike)"
        size = {"yes": "size", "no": "", "weak attackers": "size (weak attackers only)"}[self.employer_size]
        parts = [word for word in (size, "shape" if self.employer_shape == "yes" else "") if word]
        return ", ".join(["persons", *parts]) if parts else "persons only"


REQUIREMENTS: Mapping[Definition | None, Requirements] = MappingProxyType(
    {
        "strong": Requirements(individuals="yes", employer_size="yes", employer_shape="yes"),
        "weak": Requirements(individuals="yes", employer_size="weak attackers", employer_shape="no"),
        "individuals": Requirements(individuals="yes", employer_size="no", employer_shape="no"),
        "units": Requirements(individuals="no", employer_size="no", employer_shape="no", values="yes"),
        None: Requirements(individuals="no", employer_size="no", employer_shape="no"),
    }
)
"""What each definition protects; None is no formal guarantee. docs/methods/employer-employee.md prints it.

Shares under the weak definition are bounded by single workers only, which is no protection of a shape."""


def requirements(guarantee: Guarantee) -> Requirements:
    """What a table with this guarantee protects.

    >>> from sfumato.privacy.guarantee import EmployerEmployee
    >>> table = EmployerEmployee(definition="weak", alpha=Fraction(1, 10), epsilon=Fraction(2))
    >>> print(requirements(table))
    persons, size (weak attackers only)
    """
    bound = guarantee.bound
    found = REQUIREMENTS[None if bound is None or bound.condition else bound.definition]
    if bound is None or not totals_in(bound.caps) or found.employer_size != "yes":
        return found
    return replace(found, employer_size="pay alike", employer_shape="pay alike")


_OWN: Mapping[str, str] = MappingProxyType(
    {
        "smooth-pareto": "jobs.smooth:SmoothPareto",
        "smooth-gamma": "jobs.smooth:SmoothGamma",
        "smooth-laplace": "jobs.smooth:SmoothLaplace",
        "log-laplace": "jobs.logarithms:LogLaplace",
        "laplace": "jobs.laplace:Laplace",
        "laplace-records": "people.small_samples:RecordLaplace",
        "laplace-total": "people.laplace_sums:LaplaceTotal",
        "laplace-mean": "people.laplace_sums:LaplaceMean",
        "node-laplace": "jobs.laplace:NodeLaplace",
        "suppression": "exact.methods:Suppression",
        "rounding": "exact.methods:Rounding",
        "coarsening": "exact.methods:Coarsening",
        "ranges": "exact.methods:Ranges",
        "noise-infusion": "jobs.noise_infusion:NoiseInfusion",
        "noise-infusion-sums": "panel.infused_sums:InfusedSums",
        "top-contributors": "totals.top_contributors:TopContributors",
        "perturbed-values": "totals.values:PerturbedValues",
        "unit-pareto": "units.pareto:UnitPareto",
        "vector-pareto": "jobs.vector:VectorPareto",
        "vector-bell": "jobs.bell:VectorBell",
        "box-bell": "jobs.bell:BoxBell",
        "sinh-box": "jobs.sinh_box:SinhBox",
        "auto-bell": "jobs.sinh_box:AutoBell",
        "sparse-laplace": "jobs.sparse_laplace:SparseLaplace",
        "log-box": "jobs.logarithms:LogBox",
        "smooth-box": "jobs.vector:SmoothBox",
        "auto": "jobs.auto:Auto",
        "mose": "people.mose:Mose",
        "noisy-regression": "people.noisy_regression:NoisyRegression",
        "theil-sen": "people.theil_sen:TheilSen",
        "global-sensitivity": "people.sensitivity:GlobalSensitivity",
        "local-sensitivity": "people.sensitivity:LocalSensitivity",
        "noisy-quantiles": "people.percentiles:NoisyQuantiles",
    }
)
"""The methods of this package by their names, and where each is: it is loaded when a release names it."""

_COMMON = ("alpha", "epsilon", "worker_cells")
_HAS_FORMS = ("smooth-pareto", "vector-pareto")
"""Where the option `form` chooses between them."""

PLUGGED_IN = "sfumato.methods"
"""The group of entry points by which other packages add methods for counts of jobs: any name = a class."""
OFFERED = COLUMNS - {"distorted", "remainder"}
"""The columns that a method of another package may need; the others are made with a key, and are confidential."""
_SAYS = (
    *("description", "guarantee", "planned_error", "expected_error", "protect"),
    *("published_error", "published_interval"),
)
_RESERVED = frozenset({"form", "rounding", "earnings_rounding", "small_cells"})
"""Options that releases know without a look at the method."""


class _Methods(Mapping[str, MethodClass]):
    """The methods of this package, and those of others, which are looked for when a name is not one of ours."""

    @cached_property
    def _plugged(self) -> Mapping[str, tuple[MethodClass, str]]:
        """Methods of other packages, each with its package and the version."""
        from importlib.metadata import entry_points

        known: dict[str, tuple[MethodClass, str]] = {}
        taken = dict.fromkeys(_OWN, "sfumato itself")
        for plug in entry_points(group=PLUGGED_IN):
            package = f"{plug.dist.name} {plug.dist.version}" if plug.dist else plug.value
            where = f"plug-in '{plug.name}' of {package}"
            method = _plugged_in(plug, where)
            if method.name in taken:
                raise SfumatoError(
                    where,
                    expected="a method with a name of its own",
                    found=f"the name '{method.name}', which a method of {taken[method.name]} has",
                    do="rename the method, or uninstall one of the two packages",
                )
            known[method.name], taken[method.name] = (method, package), package
        return known

    def package_of(self, method: Method) -> str:
        """The package and version that a method comes from; empty for this one."""
        own = type(method).__module__.startswith("sfumato.")
        return "" if own else self._plugged[method.name][1]

    def __getitem__(self, name: str) -> MethodClass:
        if name not in _OWN:
            return self._plugged[name][0]
        module, _, of = _OWN[name].partition(":")
        method: MethodClass = getattr(import_module(f"sfumato.statistics.{module}"), of)
        return method

    def __contains__(self, name: object) -> bool:
        return name in _OWN or name in self._plugged

    def __iter__(self) -> Iterator[str]:
        return iter((*_OWN, *self._plugged))

    def __len__(self) -> int:
        return len(_OWN) + len(self._plugged)


def _plugged_in(plug: Any, where: str) -> MethodClass:
    """The class of methods behind an entry point, or an error that says what it lacks."""
    try:
        found = plug.load()
    except Exception as error:
        raise SfumatoError(
            where,
            expected=f"a class of methods at {plug.value}",
            found=f"an error of type {type(error).__name__}: {error}",
            do="mend the package, or uninstall it",
        ) from error
    lacking = _lacking(found)
    if lacking:
        raise SfumatoError(
            where,
            expected="a class of methods as sfumato.method.Method describes it",
            found=f"{plug.value}, which lacks {'; '.join(lacking)}",
            do="mend the package as CONTRIBUTING.md shows, or uninstall it",
        )
    method: MethodClass = found
    return method


def _lacking(found: Any) -> list[str]:
    """What a class lacks to be a method for counts of jobs."""
    if not (isinstance(found, type) and is_dataclass(found) and found.__dataclass_params__.frozen):  # type: ignore[attr-defined]
        return ["@dataclass(frozen=True, kw_only=True) before the class"]
    own = {part.name: part for part in fields(found)}
    needed = getattr(found, "needs", None)
    required = {part.name for part in own.values() if part.default is MISSING and part.default_factory is MISSING}
    lacks = {
        "a `name` of small letters, digits and hyphens": not re.fullmatch(
            r"[a-z][a-z0-9]*(-[a-z0-9]+)*", str(getattr(found, "name", ""))
        ),
        f"`needs`, a frozenset of some of {', '.join(sorted(OFFERED))}": not (
            isinstance(needed, frozenset) and needed and needed <= OFFERED
        ),
        **{f"`{said}`": not hasattr(found, said) for said in _SAYS},
        **{f"the parameter `{name}`": name not in own for name in _COMMON},
        **{f"a default of `{name}`": True for name in sorted(required - set(_COMMON[:2]))},
        **{f"another name for its option `{name}`": True for name in sorted(_RESERVED & set(own))},
        "a guarantee: methods without one, or for people, are sfumato's own": bool(
            getattr(found, "keyed", False) or getattr(found, "exact", False) or getattr(found, "of_people", ())
        ),
        f"a `threshold` that is {THRESHOLD} by default": "threshold" in own and own["threshold"].default != THRESHOLD,
    }
    return [words for words, true in lacks.items() if true]


METHODS = _Methods()
"""Every method of protection by its name in a release file."""


def is_free(name: str) -> bool:
    """Whether a method costs no budget: it has no formal guarantee, which a budget could limit."""
    return is_keyed(name) or is_exact(name)


def is_keyed(name: str) -> bool:
    """Whether a method takes its chance from a key file: its options are secrets."""
    return getattr(METHODS.get(name), "keyed", False)


def is_exact(name: str) -> bool:
    """Whether a method publishes true numbers, and withholds, rounds or merges some of them."""
    return getattr(METHODS.get(name), "exact", False)


def is_merging(name: str) -> bool:
    """Whether a method merges codes into those of described levels."""
    return getattr(METHODS.get(name), "merges", False)


def takes_key(name: str, options: Mapping[str, Any]) -> bool:
    """Whether a method needs a key file: always, in one of its forms, or to choose the records of a unit."""
    form, forms = options.get("form"), getattr(METHODS.get(name), "keyed_forms", ())
    return is_keyed(name) or options.get("protects") == "unit" or (isinstance(form, str) and form in forms)


def is_for_people(name: str) -> bool:
    """Whether a method protects statistics of people, and knows nothing of jobs."""
    return bool(getattr(METHODS.get(name), "of_people", ()))


def is_for_records(name: str) -> bool:
    """Whether a method protects people or other units that have records, and knows nothing of jobs."""
    return is_for_people(name) or getattr(METHODS.get(name), "of_units", False)


def for_people(statistic: str) -> dict[str, str]:
    """The methods for a statistic of people: what a release file names, and what is used."""
    fitting = (name for name in _OWN if statistic in getattr(METHODS[name], "of_people", ()))
    return {getattr(METHODS[name], "named", name): name for name in fitting}


def meant(name: str) -> str:
    """What to say of a name that no method has, nothing of others."""
    if name in METHODS:
        return ""
    close = get_close_matches(name, list(METHODS), n=1)
    return f"did you mean {close[0]!r}?" if close else "docs/choose.md lists them"


def needs(name: str) -> frozenset[str]:
    """The columns that the named method asks tabulation for; none when there is no such method."""
    return METHODS[name].needs if name in METHODS else frozenset()


def build(
    name: str,
    *,
    alpha: Fraction | None = None,
    epsilon: Fraction | None = None,
    worker_cells: int = 0,
    options: Mapping[str, Any] = MappingProxyType({}),
    of_table: Mapping[str, Any] = MappingProxyType({}),
) -> Method:
    """The named method at these parameters; alpha and epsilon play no part in those without a formal guarantee.

    `options` are what a release file says; `of_table` is what a method has to know of its table, which no file can set.

    >>> build("smooth-pareto", alpha=Fraction("0.1"), epsilon=Fraction(2)).guarantee().epsilon
    Fraction(2, 1)
    """
    if name not in METHODS:
        raise _unknown(f"method {name!r}", name, METHODS, "methods")
    method: Any = METHODS[name]
    known = _options(method)
    for option in options:
        if option not in known:
            raise _unknown_option(name, option, known)
    read = {option: _read(name, option, known[option].type, value) for option, value in options.items()}
    if is_free(name):
        free: Method = method(**read, **of_table)
        return free
    if alpha is None or epsilon is None:
        raise ReleaseError(
            f"method {name!r}",
            expected="what the table spends: epsilon, with the alpha of the budget or its own",
            found="no epsilon" if epsilon is None else "no alpha",
            do="write protect = { …, epsilon = 1 } and state a budget under [release]",
        )
    built: Method = method(alpha=alpha, epsilon=epsilon, worker_cells=worker_cells, **read, **of_table)
    if name not in _OWN and built.guarantee().bound is None:
        raise ReleaseError(
            f"method {name!r} of {METHODS.package_of(built)}",
            expected="a guarantee that a budget can limit",
            found="none",
            do="use another method, or mend the package",
        )
    return built


def built_again(name: str, parameters: Mapping[str, Any]) -> Method:
    """The method that a bundle describes by its name and `sfumato.method.public_parameters`."""
    if name not in METHODS:
        raise _unknown(f"method {name!r}", name, METHODS, "methods")
    built: Any = METHODS[name]
    if more := parameters.keys() - {part.name for part in fields(built)}:
        raise SfumatoError(
            f"method {name!r}",
            expected="parameters that this version of sfumato knows",
            found=", ".join(sorted(more)),
            do="read the bundle with the version that published it, or a later one",
        )
    exact = {part.name for part in fields(built) if Fraction in (part.type, *get_args(part.type))}
    read = {key: Fraction(value) if key in exact and value is not None else value for key, value in parameters.items()}
    method: Method = built(**read)
    return method


def options_of(name: str) -> frozenset[str]:
    """What a release file may say of a method beside alpha and epsilon."""
    return frozenset(_options(METHODS[name]))


def known_of_table(name: str) -> frozenset[str]:
    """What the named method has to know of its table; nothing when there is no such method."""
    method: Any = METHODS.get(name)
    return frozenset() if method is None else frozenset(part.name for part in fields(method) if _is_given(part))


def _options(method: Any) -> dict[str, Field[Any]]:
    return {part.name: part for part in fields(method) if part.name not in _COMMON and not _is_given(part)}


def _is_given(part: Field[Any]) -> bool:
    """Whether a parameter follows from the table, and is none of a release file."""
    return bool(part.metadata.get(OF_TABLE, False))


def _read(method: str, option: str, kind: Any, value: Any) -> Any:
    """An option as its method declares it: an exact fraction, a whole number, true or false, or a word."""
    kind = {"Fraction": Fraction, "int": int, "bool": bool, "str": str}.get(kind, kind)
    kind = str if get_origin(kind) is Literal else kind
    try:
        return _as(kind, value)
    except (ValueError, ZeroDivisionError):
        raise ReleaseError(
            f"method {method!r}, option {option!r}",
            expected=_kind_in_words(kind),
            found=_shown(method, value),
            do="correct the value",
        ) from None


def _as(kind: Any, value: Any) -> Any:
    """A value of a kind; ValueError where it is none."""
    if kind is Fraction and not isinstance(value, bool):
        return value if isinstance(value, Fraction) else Fraction(str(value))
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind is str and isinstance(value, str):
        return value
    if get_origin(kind) is tuple and isinstance(value, list | tuple):
        return tuple(_as(get_args(kind)[0], part) for part in value)
    raise ValueError(kind)


def _kind_in_words(kind: Any) -> str:
    """What an option has to be, as messages say it."""
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        several = {Fraction: "numbers", int: "whole numbers", str: "words"}
        return f"a list of {several[inner]}" if inner in several else "a list of lists, such as [[1, 75], [2, 90]]"
    words = {Fraction: "a number", int: "a whole number", bool: "true or false", str: "a word"}
    return words.get(kind, str(kind))


def _shown(method: str, value: Any) -> str:
    """A value that is refused, as messages show it: options of keyed methods are secrets."""
    if is_keyed(method):
        return "another value"
    if isinstance(value, Decimal):
        return str(value)
    return f"values by name, of {', '.join(map(str, value))}" if isinstance(value, Mapping) else repr(value)


def _unknown_option(method: str, option: str, known: Iterable[str]) -> ReleaseError:
    """A key of `protect` may be misspelt as well as an option of its method, and both are written in one place."""
    keys = ["method"] if is_free(method) else ["method", "epsilon", "alpha"]
    taken = sorted({*known, *(("form",) if method in _HAS_FORMS else ())})
    close = get_close_matches(option, [*keys, *taken], n=1)
    do = f"did you mean {close[0]!r}?" if close else "remove it, or name one of these"
    if others := [name for name in _OWN if option in _options(METHODS[name])]:
        do = f"leave it out, or use a method that takes it: {', '.join(others)}"
    return ReleaseError(
        f"method {method!r}, option {option!r}",
        expected=f"{', '.join(keys)}, or an option of the method: {', '.join(taken) or 'it takes none'}",
        found=repr(option),
        do=do,
    )


def _unknown(where: str, word: str, known: Iterable[str], kind: str) -> ReleaseError:
    close = get_close_matches(word, list(known), n=1)
    return ReleaseError(
        where,
        expected=f"one of {', '.join(sorted(known))}",
        found=repr(word),
        do=f"did you mean {close[0]!r}?" if close else f"name one of these {kind}",
    )
