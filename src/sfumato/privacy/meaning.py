"""What a guarantee means to a reader: comparisons in neighbour steps, and the sentences that are written from them.

docs/methods/employer-employee.md derives the steps; `sfumato.privacy.guarantee` counts them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, exp, floor, log, log10
from typing import Any, Literal

from sfumato.privacy.account import sequential
from sfumato.privacy.blocks import ChargedOnce
from sfumato.privacy.guarantee import (
    ANOTHER_JOB,
    ONE_JOB,
    EmployerEmployee,
    Loss,
    at_most,
    largest_step,
    loss,
    plain,
    rounded_up,
    spoken,
    totals_in,
    workforce_steps,
)

SIZES = (10, 100, 1000)
"""Establishments of so many workers are the examples."""

About = Literal[
    "job",
    "description of a job",
    "two jobs",
    "description of two jobs",
    "size",
    "size, alike",
    "size, pay alike",
    "share",
    "share, pay alike",
    "establishment",
    "person",
    "description of a person",
    "record",
    "description of a record",
    "value",
]
"""What two states of the data differ in: whether a job (or both jobs of a person with two, or a person, or a record) is
there, or what is said of it; the size of an establishment, also where all groups of workers grow alike, or where what
its workers earn, or whatever else is added up, grows alike; the number of women, say, among its workers; whether there
is an establishment at all; the value of a unit."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two states of the data that a reader may wonder about, and the bound between them."""

    about: About
    loss: Loss
    size: int | None = None
    """The workers of the establishment, for shares."""
    pair: tuple[int, int] | None = None
    """The two numbers that are compared, for sizes, shares and values."""
    tables: tuple[str, ...] = ()
    """The tables that are bounded, where these are not all of the release."""
    measure: str = ""
    """What is compared of a unit, for values."""

    def data(self) -> dict[str, Any]:
        """The same for machines; numbers that are no short fractions are rounded up."""
        return {
            "about": self.about,
            **({"measure": self.measure} if self.measure else {}),
            **({} if self.size is None else {"size": self.size}),
            **({} if self.pair is None else {"one": self.pair[0], "other": self.pair[1]}),
            **({"tables": list(self.tables)} if self.tables else {}),
            "steps": self.loss.steps,
            "epsilon": rounded_up(self.loss.epsilon),
            "delta": rounded_up(self.loss.delta),
        }


def comparisons(guarantee: EmployerEmployee) -> tuple[Comparison, ...]:
    """Everything that the statement of a release with employers compares."""
    return (*job_comparisons(guarantee), *size_comparisons(guarantee), *share_comparisons(guarantee))


def job_comparisons(guarantee: EmployerEmployee) -> tuple[Comparison, ...]:
    """Whether one job exists and what is said of it, then the same for two jobs of a person together."""
    steps: dict[About, int] = {
        "job": ONE_JOB,
        "description of a job": ANOTHER_JOB,
        "two jobs": 2 * ONE_JOB,
        "description of two jobs": 2 * ANOTHER_JOB,
    }
    return tuple(Comparison(about=about, loss=loss(guarantee, count)) for about, count in steps.items())


def person_comparisons(guarantee: EmployerEmployee) -> tuple[Comparison, ...]:
    """Whether a person is among the data, and what is said of one who is: one person less and another one more."""
    return (
        Comparison(about="person", loss=loss(guarantee, 1)),
        Comparison(about="description of a person", loss=loss(guarantee, 2)),
    )


def record_comparisons(guarantee: EmployerEmployee) -> tuple[Comparison, ...]:
    """Whether a record is in a cube, and in which of its cells.

    A record in another cell changes two cells, whose noises are independent: they reveal what two outputs do.
    """
    one, two = guarantee, sequential([guarantee, guarantee])
    return (
        Comparison(about="record", loss=Loss(steps=1, epsilon=one.epsilon, delta=one.delta)),
        Comparison(about="description of a record", loss=Loss(steps=2, epsilon=two.epsilon, delta=two.delta)),
    )


def about_tables(found: Sequence[Comparison], tables: Sequence[str]) -> tuple[Comparison, ...]:
    """The same, said of some tables of a release only."""
    return tuple(replace(one, tables=tuple(tables)) for one in found)


def named_tables(names: Sequence[str]) -> str:
    """Tables in a sentence.

    >>> named_tables(["a"]), named_tables(["a", "b", "c"])
    ('the table `a`', 'the tables `a`, `b` and `c`')
    """
    quoted = [f"`{name}`" for name in names]
    listed = " and ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))
    return f"the table{'s' if len(quoted) > 1 else ''} {listed}"


def why_charged_once(found: ChargedOnce, about_others: Collection[str] = ()) -> str:
    """Why tables cost less together than by themselves, in a sentence.

    What an earlier version charged `about_others` adds up, whatever it would cost now.
    """
    if before := [name for name in found.names if name in about_others]:
        tables = named_tables(before)
        return (
            f"{why_revealing_less(found)} {tables[0].upper()}{tables[1:]} {'was' if len(before) == 1 else 'were'} "
            "charged before charges said which establishments they are about: the ledger counts that for all "
            "establishments, and adds it to what else was charged."
        )
    by, tables, cost = _about_different(found)
    if found.disjoint:
        return (
            f"{tables[0].upper()}{tables[1:]} are about different establishments, told apart by {by}, and are charged "
            f"once: {cost}."
        )
    return (
        f"No establishment is in all of {tables}, told apart by {by}: together they are charged as they are for the "
        f"establishments that cost most, {cost}."
    )


def why_revealing_less(found: ChargedOnce) -> str:
    """Why tables reveal less together than by themselves, in a sentence, whatever the ledger was charged for them."""
    by, tables, cost = _about_different(found)
    if found.disjoint:
        return (
            f"{tables[0].upper()}{tables[1:]} are about different establishments, told apart by {by}: of any of them "
            f"they reveal {cost} together."
        )
    return (
        f"No establishment is in all of {tables}, told apart by {by}: of any establishment they reveal {cost} at most "
        "together."
    )


def _about_different(found: ChargedOnce) -> tuple[str, str, str]:
    by = " and ".join(filter(None, [", ".join(found.attributes[:-1]), found.attributes[-1]]))
    cost = f"epsilon = {at_most(found.epsilon)} and not {at_most(found.added_epsilon)}"
    return by, named_tables(found.names), cost


def size_comparisons(guarantee: EmployerEmployee) -> tuple[Comparison, ...]:
    """Sizes of an establishment a share alpha apart, and twice that."""
    if guarantee.definition == "individuals":
        return ()
    once = [(size, largest_step(size, guarantee.alpha)) for size in SIZES]
    if guarantee.definition == "weak" or guarantee.caps:
        about: About = "size, alike" if guarantee.definition == "weak" else "size, pay alike"
        alike = [Comparison(about=about, pair=pair, loss=loss(guarantee, 1)) for pair in once]
        return (*alike, *(_size(guarantee, *pair) for pair in once))
    twice = [(size, largest_step(more, guarantee.alpha)) for size, more in once]
    return tuple(_size(guarantee, *pair) for pair in (*once, *twice))


def share_comparisons(guarantee: EmployerEmployee) -> tuple[Comparison, ...]:
    """Numbers of women, say, in two workforces of one size that differ by as many workers as a step may add."""
    if guarantee.definition == "individuals":
        return ()
    found = tuple(_share(guarantee, size) for size in SIZES)
    if guarantee.definition == "weak" or not guarantee.caps:
        return found
    alike = (replace(each, about="share, pay alike", loss=loss(guarantee, 2)) for each in found)
    return (*alike, *found)


def existence_comparison(guarantee: EmployerEmployee, size: int) -> Comparison:
    """No establishment, and one of some size, where nothing tells of those without workers: they grow from none."""
    return replace(_size(guarantee, 0, size), about="establishment")


def _size(guarantee: EmployerEmployee, size: int, other: int) -> Comparison:
    steps = workforce_steps(guarantee, size=size, added=other - size)
    return Comparison(about="size", pair=(size, other), loss=loss(guarantee, steps))


def _share(guarantee: EmployerEmployee, size: int) -> Comparison:
    moved = min(largest_step(size, guarantee.alpha) - size, size)
    fewer = min(size // 2, size - moved)
    steps = workforce_steps(guarantee, size=size, added=moved, removed=moved)
    return Comparison(about="share", size=size, pair=(fewer, fewer + moved), loss=loss(guarantee, steps))


def person(guarantee: EmployerEmployee) -> str:
    """What a guarantee means for one person and one job."""
    job, described, jobs, described_jobs = (found.loss for found in job_comparisons(guarantee))
    return (
        f"Whether a given person held a given job: this release changes the odds by {odds(job)}."
        f"{believed(job, 'it fifty-fifty', ', even knowing everything about everyone else')} Of a job that is known to "
        "exist, whether it is at one workplace or at another, or whether its worker is of one age or sex or another: "
        f"{odds(described)}.{believed(described, 'both equally likely')} That is one job less and another one more, "
        "two steps. A person with several jobs has this protection for each. For two jobs together it is "
        f"{odds(jobs)}, and for what is said of their worker {odds(described_jobs)}."
    )


def establishment(guarantee: EmployerEmployee) -> list[str]:
    """What a guarantee means for establishments of 10, 100 and 1,000 workers."""
    if guarantee.definition == "individuals":
        return [
            "The size of an establishment and the composition of its workforce are not protected. The noise hides one "
            "job, not a workforce: a reader who knows that a cell holds one establishment learns its size, the shares "
            "of groups among its workers and its growth almost exactly."
        ]
    if guarantee.definition == "weak":
        return _weak(guarantee)
    return _with_totals(guarantee) if guarantee.caps else _strong(guarantee)


def _strong(guarantee: EmployerEmployee) -> list[str]:
    sizes, shares = size_comparisons(guarantee), share_comparisons(guarantee)
    once, twice = sizes[: len(SIZES)], sizes[len(SIZES) :]
    return [
        f"Whether an establishment has {_pairs(once)} workers: the odds change by {_each(once)}."
        f"{believed(once[0].loss, 'both equally likely')} Sizes further apart are easier to tell apart: each further "
        f"step of {plain(100 * guarantee.alpha)} %, or of one worker, multiplies the odds again. For {_pairs(twice)} "
        f"workers it is {_each(twice)}.",
        "Two workforces of the same size but of other people are at least two steps apart, one that adds workers and "
        f"one that removes others. Whether {_of(shares)} workers are women, say: {_each(shares)}."
        f"{believed(shares[0].loss, 'both equally likely')} Shares further apart take more steps.",
    ]


def _with_totals(guarantee: EmployerEmployee) -> list[str]:
    """What the strong definition means where steps are limited by what workers earn, or whatever else is added up."""
    sizes, shares = size_comparisons(guarantee), share_comparisons(guarantee)
    alike, whoever = sizes[: len(SIZES)], sizes[len(SIZES) : -1]
    replaced, others = shares[: len(SIZES)], shares[len(SIZES) : -1]
    totals = totals_in(guarantee.caps)
    limits = " and ".join(f"{measure} of {cap:,} or more" for measure, cap in spoken(totals))
    share = plain(100 * guarantee.alpha)
    themselves = " So it is of the totals themselves: with such workers more or without them. Sizes and totals"
    no_step = f": {share} % more workers who all have {limits} are no single step"
    pay = (
        " A worker whose pay, or whatever is added up, is another is one job less and another one more, two steps; if "
        "it changes for several, it is two for each."
    )
    return [
        f"Whether an establishment has {_pairs(alike)} workers, if {grows(guarantee)}: the odds change by "
        f"{_each(alike)}.{believed(alike[0].loss, 'both equally likely')}{themselves if totals else ' Sizes'} "
        "further apart are easier to tell apart: each further step multiplies the odds again.",
        f"If the additional workers have more than that together, each of them can be a step{no_step if totals else ''}"
        f". For {_pairs(whoever)} workers it is then {_each(whoever)}.",
        "Two workforces of the same size but of other people are at least two steps apart, one that adds workers and "
        f"one that removes others. Whether {_of(replaced)} workers are women, say: {_each(replaced)} if "
        f"{'the totals move' if totals else 'these numbers of jobs move'} by no more than that in both steps, and "
        f"otherwise {_each(others)} for the first two.{pay if totals else ''}",
    ]


def grows(guarantee: EmployerEmployee, begins: str = "", *, who: str = "they") -> str:
    """What else grows by no more than a step may add, where totals are told."""
    share, totals = plain(100 * guarantee.alpha), totals_in(guarantee.caps)
    texts = [
        f"{f'what {who} have of {words} in all' if (measure, cap) in totals else f'the number of {words}'} is larger "
        f"by at most {share} % or by {f'{cap:,}' if cap > 1 else 'one'}"
        for (measure, cap), (words, _) in zip(guarantee.caps, spoken(guarantee.caps), strict=True)
    ]
    return begins + " and ".join(texts) if texts else ""


def _weak(guarantee: EmployerEmployee) -> list[str]:
    sizes, shares = (
        size_comparisons(guarantee),
        share_comparisons(guarantee)[:-1],
    )  # the largest would only be longer numbers
    alike, whoever = sizes[: len(SIZES)], sizes[len(SIZES) : -1]
    share = plain(100 * guarantee.alpha)
    return [
        f"Whether an establishment has {_pairs(alike)} workers, if every group of them, by whatever attributes, is "
        f"larger by at most {share} % or by one worker{grows(guarantee, ', and if ')}: the odds change by "
        f"{_each(alike)}."
        f"{believed(alike[0].loss, 'both equally likely')}",
        "If the additional workers are mostly of few kinds, each of them can be a step, and readers who know the "
        f"attributes of the workers can make use of that: for {_pairs(whoever)} workers it is then {_each(whoever)}.",
        "For the composition of the workforce there is no bound but that of single workers: each who is another is two "
        f"steps. Whether {_of(shares)} workers are women, say: {_each(shares)}.",
    ]


def _pairs(found: Sequence[Comparison]) -> str:
    """The sizes that are compared, in a row."""
    texts = [pair_of(each) for each in found]
    return f"{', '.join(texts[:-1])}, or {texts[-1]}"


def pair_of(found: Comparison) -> str:
    """The two sizes that are compared, in words."""
    return " or ".join(f"{number:,}" for number in found.pair or ())


def _of(found: Sequence[Comparison]) -> str:
    """The shares that are compared, in a row."""
    texts = [f"{each.pair[0]:,} or {each.pair[1]:,} of {each.size:,}" for each in found if each.pair]
    return f"{', '.join(texts[:-1])}, or {texts[-1]}"


def _each(found: Sequence[Comparison]) -> str:
    """The bounds of comparisons: one where they are all the same, else one after the other."""
    texts = [odds(each.loss) for each in found]
    return texts[0] if len(set(texts)) == 1 else f"{', '.join(texts[:-1])}, and {texts[-1]}"


def odds(found: Loss) -> str:
    """By how much the odds between two states change at most, in words that follow "the odds change by"."""
    if found.delta >= 1:
        return "a factor without any bound"
    failing = f", except with a probability of at most {at_most(found.delta)}" if found.delta else ""
    return f"a factor of at most {factor(found.epsilon)}{failing}"


def believed(found: Loss, before: str, even: str = "") -> str:
    """A sentence about the most that a belief of one half can become, with the space before it."""
    if found.delta >= 1:
        return ""
    sure = certainty(found.epsilon)
    return f" Someone who thought {before} before can be {sure}{even if sure != NEARLY_CERTAIN else ''}."


def surest(found: Loss) -> str:
    """How sure anyone can be of what seemed as likely as not, for the first paragraph of a statement."""
    if found.delta >= 1:
        return "nothing bounds how sure anyone can be afterwards"
    return f"whoever thought it fifty-fifty before can be {certainty(found.epsilon)}"


NO_PROTECTION = 13
"""Epsilons above it change odds by factors that are only told as a power of ten."""


def factor(epsilon: Fraction) -> str:
    """How much the odds change at most, in a few digits, rounded up."""
    if epsilon > NO_PROTECTION:
        power = float(epsilon) / log(10)
        return f"10 to the power of {ceil(power)}, which is no protection"
    change = exp(epsilon)
    unit = 10.0 ** (floor(log10(change)) - 2)
    return f"{ceil(change / unit) * unit:,.{2 if change < 10 else 1 if change < 100 else 0}f}"


NEARLY_CERTAIN = "all but certain afterwards, which is no protection"


def certainty(epsilon: Fraction) -> str:
    """The most that a belief of one half can become, rounded up, in words that follow "can be".

    >>> certainty(Fraction(3))
    'at most 96 % sure afterwards'
    >>> certainty(Fraction(20))
    'all but certain afterwards, which is no protection'
    """
    most = 1 / (1 + exp(-min(float(epsilon), 500)))
    for digits in (0, 1, 2, 3):
        scale = 10 ** (digits + 2)
        rounded = -(-most * scale // 1) / scale
        if rounded < 1:
            return f"at most {100 * rounded:.{digits}f} % sure afterwards"
    return NEARLY_CERTAIN
