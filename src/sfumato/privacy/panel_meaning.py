"""What tables of a panel mean for a job that is held over several of its periods."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from sfumato.frame.jobs import Around
from sfumato.privacy.guarantee import Loss, at_most
from sfumato.privacy.meaning import odds

_NEXT_TO = {
    (0, 0): "",
    (1, 0): " and the one after it",
    (0, 1): " and the one before it",
    (1, 1): " and those next to it",
}
"""Where else a job is counted that had earnings in a period, by what its population looks at."""


def one_record(spent: Mapping[str, Fraction], codes: Sequence[str], around: Around) -> Fraction:
    """The most that tables tell of whether one job had earnings in one period, given what each period spends.

    A job that is counted at t had earnings from t − before to t + after: a record of s decides about the periods from
    s − after to s + before, each of which moves by one job. docs/methods/panels.md has the proof.
    """
    places = range(-around.after, around.before + 1)
    sums = (
        sum((spent.get(codes[at + step], Fraction(0)) for step in places if 0 <= at + step < len(codes)), Fraction(0))
        for at in range(len(codes))
    )
    return max(sums, default=Fraction(0))


def over_panel(spent: Mapping[str, Fraction], delta: Fraction, codes: Sequence[str], around: Around) -> str:
    """What is protected of a job over all periods that the tables are about, and of its record in one of them."""
    listed = "; ".join(f"{code}, epsilon = {at_most(spent[code])}" for code in codes if code in spent)
    once = Loss(steps=1, epsilon=one_record(spent, codes, around), delta=delta)
    where = _NEXT_TO[around.before, around.after]
    return (
        "The data are a panel. A job is a worker at an establishment, with all periods in which it was held, and what "
        f"is said here of a job is about all of them together. The tables are about: {listed}. Of a job that was held "
        "at some of these periods, only what they spend counts. Whether a given person had any earnings at a given "
        f"establishment in one single period decides about the counts of that period{where}: by these tables the odds "
        f"change by {odds(once)}."
    )
