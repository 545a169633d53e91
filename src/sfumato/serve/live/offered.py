"""Which methods the budget of a server can pay for, and why it cannot pay for the others."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import BudgetError, SfumatoError
from sfumato.live import FormalLive
from sfumato.methods.registry import KEYED, METHODS, options_of
from sfumato.privacy.guarantee import Definition, EmployerEmployee, weakest
from sfumato.privacy.spending import balance
from sfumato.protection import FOR_PEOPLE

OF_PEOPLE = frozenset(used for named in FOR_PEOPLE.values() for used in named.values())
"""Methods that protect statistics of people, and know nothing of jobs."""
_NOT_FOR_JOBS = "it is made for surveys of people, and does not count jobs"
_KEYED = "it has no formal guarantee, which a budget could limit"
_WORKPLACES = "by attributes of workers {}"
_PROMISES: dict[Definition, str] = {
    "weak": "hides an employer's size only from those who know nothing of its workers",
    "individuals": "protects single people and no employers",
}


@dataclass(frozen=True, kw_only=True)
class Offered:
    """The methods that new questions may name, with a restriction in words or none; and why others are not there."""

    methods: dict[str, str]
    others: dict[str, str]


def offered(live: FormalLive) -> Offered:
    """Try every method at the largest epsilon, by an attribute of workplaces and one of workers; nothing is charged."""
    methods: dict[str, str] = {}
    others: dict[str, str] = {}
    for name in METHODS:
        reasons = {public: _reason(live, name, attribute) for public, attribute in _attributes(live)}
        if all(reasons.values()):
            others[name] = str(next(iter(reasons.values())))
        else:
            workers = reasons.get(False)
            methods[name] = _WORKPLACES.format(workers) if workers else ""
    return Offered(methods=methods, others=others)


def _attributes(live: FormalLive) -> Iterator[tuple[bool, str]]:
    """The first attribute of workplaces and the first of workers, as far as there are such."""
    found: dict[bool, str] = {}
    for name in live.codelists:
        found.setdefault(live.release.data.is_public(name), name)
    yield from sorted(found.items(), reverse=True)


def _reason(live: FormalLive, method: str, attribute: str) -> str | None:
    """Why a method cannot be asked for; None if it can."""
    if method in KEYED:
        return _KEYED
    if method in OF_PEOPLE:
        return _NOT_FOR_JOBS
    most = live.release.live.most_epsilon or live.most.epsilon
    # The default of a method may be less delta than there is: what refuses it at the most is the reason.
    deltas = [None, live.most.delta] if live.most.delta and "delta" in options_of(method) else [None]
    reasons = [_refused(live, method, attribute, most, delta) for delta in deltas]
    return None if None in reasons else reasons[-1]


def _refused(live: FormalLive, method: str, attribute: str, epsilon: Fraction, delta: Fraction | None) -> str | None:
    try:
        guarantee = live.planned(by=(attribute,), epsilon=epsilon, delta=delta, method=method).guarantee
    except SfumatoError as error:
        return f"it needs {error.expected}; here the most is {error.found}"
    assert isinstance(guarantee, EmployerEmployee)
    try:
        cost = balance(live.release.account, live.most, [guarantee])
    except BudgetError as error:
        return _promise(guarantee, live.most) or error.found
    if cost.spent_delta > live.most.delta:
        return "it needs more delta than the budget has"
    return None


def _promise(guarantee: EmployerEmployee, budget: EmployerEmployee) -> str:
    """What a method promises, if that is less than the budget does."""
    together = weakest([guarantee.definition, budget.definition])
    if together == budget.definition:
        return ""
    return f"it {_PROMISES[together]}, which is less than the {budget.definition} definition of the budget promises"
