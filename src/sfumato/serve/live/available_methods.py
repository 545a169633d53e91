"""Which methods the budget of a server can pay for, for which questions, and why it cannot pay for the others."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sfumato.errors import BudgetError, SfumatoError
from sfumato.live import ChargedSession
from sfumato.privacy.account import Overdraft
from sfumato.privacy.guarantee import Definition, EmployerEmployee, Guarantee, weakest
from sfumato.statistics.registry import METHODS, is_for_records, is_free, options_of

_NOT_FOR_JOBS = "it is made for records of people or businesses, and does not count jobs"
_KEYED = "it has no formal guarantee, which a budget could limit"
_FOR_SOME = "with a filter on attributes of workers"
_PROMISES: dict[Definition, str] = {
    "weak": "hides an employer's size only from those who know nothing of its workers",
    "individuals": "protects single people and no employers",
}


@dataclass(frozen=True, kw_only=True)
class AvailableMethods:
    """The methods that new questions may name, with a restriction in words or none; and why others are not there."""

    methods: dict[str, str]
    for_some_workers: tuple[str, ...]
    """Those that a question with a filter on attributes of workers may name."""
    others: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class _Shape:
    """A question that stands for all with as many combinations of codes of workers."""

    by: tuple[str, ...]
    cells: int = 1
    workers: tuple[str, ...] = ()
    """Labels of the attributes of workers in `by`."""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def available_methods(live: ChargedSession) -> AvailableMethods:
    """Try every method at the largest epsilon, with all numbers of workers' codes, and with a filter on workers.

    Nothing is charged, and nothing is read.
    """
    shapes = _shapes(live)
    methods: dict[str, str] = {}
    others: dict[str, str] = {}
    for_some = []
    for name in METHODS:
        if is_free(name) or is_for_records(name):
            others[name] = _KEYED if is_free(name) else _NOT_FOR_JOBS
            continue
        least = {kind: _reason(live, name, some[0]) for kind, some in shapes.items()}
        if all(least.values()):
            others[name] = str(next(iter(least.values())))
            continue
        limits = [_limit(live, name, kind, shapes[kind]) for kind, reason in least.items() if reason is None]
        methods[name] = "; ".join([*_never(least), *filter(None, limits)])
        if _FOR_SOME in least and least[_FOR_SOME] is None:
            for_some.append(name)
    return AvailableMethods(methods=methods, for_some_workers=tuple(for_some), others=others)


def _never(reasons: Mapping[str, str | None]) -> Iterable[str]:
    """What a method may not be asked for at all; kinds of questions with the same reason together."""
    for reason in dict.fromkeys(filter(None, reasons.values())):
        kinds = [kind for kind, why in reasons.items() if why == reason]
        yield f"not {' nor '.join(kinds)}: {reason}"


def _limit(live: ChargedSession, method: str, kind: str, shapes: list[_Shape]) -> str:
    """How many combinations of workers' codes are too many, in words; nothing where none are."""
    # The more cells share epsilon the less each has, so that what is too much for some is too much for all after it.
    first = bisect_left(shapes, 1, lo=1, key=lambda shape: int(_reason(live, method, shape) is not None))
    if first == len(shapes):
        return ""
    last, beyond = shapes[first - 1], shapes[first]
    return f"{kind} up to {_combinations(last)}; with {_combinations(beyond)} {_reason(live, method, beyond)}"


def _combinations(shape: _Shape) -> str:
    if not shape.workers:
        return "none of them in `by`"
    return f"{shape.cells} combinations of their codes ({' × '.join(shape.workers)})"


def _shapes(live: ChargedSession) -> dict[str, list[_Shape]]:
    """Questions to try by what they are about, each with more combinations of workers' codes than the one before."""
    data, codes = live.release.data, {name: codelist.codes for name, codelist in live.codelists.items()}
    public = [name for name in codes if data.is_public(name)]
    workers = [name for name in codes if name not in public]
    place = tuple(sorted(public, key=lambda name: len(codes[name]))[:1])
    found: dict[str, list[_Shape]] = {}
    if place:
        found["by attributes of workplaces alone"] = [_Shape(by=place)]
    if workers:
        found["by attributes of workers"] = _products(live, workers)
    kept = min((name for name in workers if len(codes[name]) > 1), key=lambda name: len(codes[name]), default=None)
    if kept is not None:
        only = {kept: codes[kept][:1]}
        least = _Shape(by=place or (kept,), where=only)
        others = _products(live, [name for name in workers if name != kept], where=only)
        found[_FOR_SOME] = [least, *(shape for shape in others if shape.cells > 1)]
    return found


def _products(
    live: ChargedSession, names: list[str], where: Mapping[str, tuple[str, ...]] | None = None
) -> list[_Shape]:
    """By some attributes together, ascending in cells: for every number of cells that a question may have, one."""
    found: dict[int, tuple[str, ...]] = {1: ()}
    for name in names:
        times = len(live.codelists[name].codes)
        for cells, some in list(found.items()):
            if cells * times <= live.release.live.most_cells:
                found.setdefault(cells * times, (*some, name))
    data = live.release.data
    return [
        _Shape(by=some, cells=cells, workers=tuple(data.label(name) for name in some), where=where or {})
        for cells, some in sorted(found.items())
        if some
    ]


def _reason(live: ChargedSession, method: str, shape: _Shape) -> str | None:
    """Why a method cannot be asked for; None if it can."""
    most = live.release.live.most_epsilon or live.most.epsilon
    asked: dict[str, Any] = {"by": shape.by, "where": shape.where, "epsilon": most, "method": method}
    # The default of a method may be less delta than there is: what refuses it at the most is the reason.
    deltas = [None, live.most.delta] if live.most.delta and "delta" in options_of(method) else [None]
    reason = ""
    for delta in deltas:
        try:
            live.refuse_unpayable(delta=delta, **asked)
        except Overdraft:
            reason = "it needs more delta than the budget has"
        except BudgetError as error:
            reason = _promise(live.plan(delta=delta, **asked).guarantee, live.most) or error.found
        except SfumatoError as error:
            here = f"; here the most is {error.found}" if error.found.startswith("epsilon") else ""
            reason = f"it needs {error.expected}{here}"
        else:
            return None
    return reason


def _promise(guarantee: Guarantee, budget: EmployerEmployee) -> str:
    """What a method promises, if that is less than the budget does."""
    assert guarantee.bound is not None
    together = weakest([guarantee.bound.definition, budget.definition])
    if together == budget.definition:
        return ""
    return f"it {_PROMISES[together]}, which is less than the {budget.definition} definition of the budget promises"
