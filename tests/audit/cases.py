"""Every kind of release with a formal guarantee, with neighbours that come close to what it states."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from tests.audit.blocks import (
    CAP,
    FLOOR,
    Business,
    Businesses,
    Firm,
    Firms,
    Group,
    Held,
    Histories,
    Record,
    people,
)
from tests.audit.harness import Case, Question
from tests.audit.histories import OF_HISTORIES

STRONG = "alpha = 0.1, epsilon = 20"
PAID = f'{STRONG}, totals = ["pay"]'
WEAK = 'alpha = 0.1, epsilon = 20, definition = "weak"'
PEOPLE = 'epsilon = 20, definition = "individuals"'
CUBES = 'epsilon = 40, delta = 0.5, definition = "individuals"'

WORKER = "one worker more"
SIZE = "an establishment a tenth larger"
ATTRIBUTE = "a worker of the other sex"
MOVED = "a worker at the other workplace"
PERSON = "one person more"
HISTORY = "one person more, with the whole history"
ANSWER = "a person with another record"
RECORD = "one record more"
CELL = "a record in another cell"
FIRST = "the first record of an empty cell"
UNIT = "a firm more, with all its records"
OTHER_UNIT = "a firm with other records"


def jobs(by: str, protect: str, name: str = "jobs", more: str = "") -> str:
    """A table that counts jobs."""
    return table(by, protect, name=name, more=more, statistic='count = "jobs"')


def total(by: str, protect: str, name: str = "pay", more: str = "") -> str:
    """A table that adds up the pay of jobs."""
    return table(by, protect, name=name, more=more, statistic='total = "pay"')


def table(by: str, protect: str, *, statistic: str, name: str = "people", more: str = "") -> str:
    """A table of a release file; attributes of `by` are words."""
    listed = ", ".join(f'"{attribute}"' for attribute in by.split())
    return f'[[table]]\nname = "{name}"\n{statistic}\nby = [{listed}]\n{more}\nprotect = {{ {protect} }}\n\n'


def cube(more: str = "", by: str = "block side", epsilon: str = "1", cap: int = 12) -> str:
    """A cube of a release file."""
    listed = ", ".join(f'"{attribute}"' for attribute in by.split())
    return f'[[cube]]\nname = "cube"\nby = [{listed}]\nepsilon = {epsilon}\ncap = {cap}\n{more}\n\n'


def firm(women: int, men: int = 0, *others: Firm, joined: bool = False) -> Firms:
    """A place with one establishment, and others."""
    return Firms(firms=(Firm(women=women, men=men), *others), joined=joined)


NOBODY = Firms(firms=())
"""A place without any establishment."""


def group(*records: Record, **options: Any) -> Group:
    """A group with these records."""
    return Group(records=records, **options)


def method(name: str, epsilon: str = "1", **options: str) -> str:
    """The protection of a table."""
    return ", ".join([f'method = "{name}"', f"epsilon = {epsilon}", *(f"{key} = {o}" for key, o in options.items())])


_ACROSS = Firm(men=4, side="b")
_MOVE = {
    "before": firm(4, 0, Firm(women=3, side="b")),
    "after": firm(3, 0, Firm(women=4, side="b")),
    "neighbour": MOVED,
    "steps": 2,
}
_PARETO = method("smooth-pareto")
_SIDES = "".join(jobs("block", _PARETO, name=f"side-{code}", more=f'where = {{ side = "{code}" }}') for code in "ab")
"""Two tables about different establishments, which are charged once."""
_ONE_MORE = {"before": firm(3), "after": firm(4), "neighbour": WORKER}
_TENTH = {"before": firm(20), "after": firm(22), "neighbour": SIZE}
_BOTH_SEXES = {"before": firm(10, 10), "after": firm(11, 11), "neighbour": SIZE}
_OTHER_SEX = {"before": firm(10, 10), "after": firm(9, 11), "neighbour": ATTRIBUTE, "steps": 2}


def _few(women: int, **of_each: Any) -> Firms:
    """A place with one establishment whose workers earn a hundredth of the cap, but for some."""
    return Firms(firms=(Firm(women=women, pay=CAP // 100, **of_each),))


_ONE_PAID = {
    "before": _few(3),
    "after": _few(4, paid_more=1, more=CAP),
    "neighbour": "one worker more, who earns the cap",
}
_TENTH_PAID = {
    "before": Firms(firms=(Firm(women=20, pay=CAP),)),
    "after": Firms(firms=(Firm(women=22, pay=CAP),)),
    "neighbour": "an establishment with a tenth more workers and pay",
}

OF_JOBS = (
    Case(name="smooth-pareto", **_ONE_MORE, budget=STRONG, tables=jobs("block", _PARETO)),
    Case(name="smooth-pareto of 20", quick=False, **_TENTH, budget=STRONG, tables=jobs("block", _PARETO)),
    Case(
        name="smooth-pareto, the first worker",
        quick=False,
        before=firm(0),
        after=firm(1),
        neighbour=WORKER,
        budget=STRONG,
        tables=jobs("block", _PARETO),
    ),
    Case(
        name="smooth-pareto, the smaller of two",
        quick=False,
        before=firm(20, 0, Firm(women=10)),
        after=firm(20, 0, Firm(women=11)),
        neighbour=SIZE,
        budget=STRONG,
        tables=jobs("block", _PARETO),
    ),
    Case(
        name="smooth-pareto, two steps of size",
        quick=False,
        before=firm(20),
        after=firm(24),
        neighbour="an establishment a fifth larger",
        steps=2,
        budget=STRONG,
        tables=jobs("block", _PARETO),
    ),
    Case(name="smooth-pareto, moved", **_MOVE, budget=STRONG, tables=jobs("block side", _PARETO)),
    Case(
        name="smooth-pareto, each side by itself",
        quick=False,
        before=firm(3, 0, _ACROSS),
        after=firm(4, 0, _ACROSS),
        neighbour=WORKER,
        budget=STRONG,
        tables=_SIDES,
    ),
    Case(name="smooth-pareto, each side by itself, moved", quick=False, **_MOVE, budget=STRONG, tables=_SIDES),
    Case(
        name="smooth-pareto at epsilon 4",
        quick=False,
        **_TENTH,
        budget=STRONG,
        tables=jobs("block", method("smooth-pareto", "4")),
    ),
    Case(
        name="smooth-pareto, scalar",
        **_BOTH_SEXES,
        budget=WEAK,
        tables=jobs("block sex", method("smooth-pareto", "2", form='"scalar"')),
    ),
    Case(
        name="smooth-pareto, scalar, other sex",
        quick=False,
        **_OTHER_SEX,
        budget=WEAK,
        tables=jobs("block sex", method("smooth-pareto", "2", form='"scalar"')),
    ),
    Case(
        name="smooth-pareto where sex is F",
        quick=False,
        **_BOTH_SEXES,
        budget=WEAK,
        tables=jobs("block", _PARETO, more='where = { sex = "F" }'),
    ),
    Case(
        name="smooth-pareto at a smaller alpha than the budget's",
        before=firm(40),
        after=firm(44),
        neighbour=SIZE,
        budget=STRONG,
        tables=jobs("block", method("smooth-pareto", "1", alpha="0.05")),
    ),
    Case(
        name="sparse-laplace",
        before=firm(20, 2),
        after=firm(20, 4),
        neighbour=SIZE,
        budget=STRONG,
        tables=jobs("block sex", method("sparse-laplace", "2", false_cells="0.2")),
    ),
    Case(
        name="sparse-laplace, one worker more",
        quick=False,
        **_ONE_MORE,
        budget=STRONG,
        tables=jobs("block sex", method("sparse-laplace", "2", false_cells="0.2", size_share="0.8")),
    ),
    Case(
        name="sparse-laplace, other sex",
        quick=False,
        **_OTHER_SEX,
        budget=STRONG,
        tables=jobs("block sex", method("sparse-laplace", "2", false_cells="0.2")),
    ),
    Case(
        name="sparse-laplace of persons alone",
        quick=False,
        before=firm(3, 2),
        after=firm(4, 2),
        neighbour=WORKER,
        budget='alpha = 0.1, epsilon = 20, definition = "individuals"',
        tables=jobs("block sex", method("sparse-laplace", "1", employers="false", false_cells="0.2")),
    ),
    Case(name="log-laplace", quick=False, **_TENTH, budget=STRONG, tables=jobs("block", method("log-laplace"))),
    Case(name="log-laplace, tight", **_TENTH, budget=STRONG, tables=jobs("block", method("log-laplace", tight="true"))),
    Case(
        name="log-laplace, tight and debiased",
        quick=False,
        **_ONE_MORE,
        budget=STRONG,
        tables=jobs("block", method("log-laplace", tight="true", debias="true")),
    ),
    Case(name="smooth-gamma", quick=False, **_TENTH, budget=STRONG, tables=jobs("block", method("smooth-gamma"))),
    Case(
        name="smooth-gamma, tight", **_TENTH, budget=STRONG, tables=jobs("block", method("smooth-gamma", tight="true"))
    ),
    Case(
        name="smooth-laplace",
        **_TENTH,
        budget=f"{STRONG}, delta = 0.01",
        tables=jobs("block", method("smooth-laplace", "1.1", delta="0.005")),
    ),
    Case(
        name="smooth-laplace, one worker",
        quick=False,
        **_ONE_MORE,
        budget=f"{STRONG}, delta = 0.01",
        tables=jobs("block", method("smooth-laplace", "1.1", delta="0.005")),
    ),
    Case(
        name="vector-pareto",
        before=firm(1, 19),
        after=firm(3, 19),
        neighbour=SIZE,
        budget=STRONG,
        tables=jobs("block sex", method("vector-pareto")),
    ),
    Case(
        name="vector-pareto, both sexes",
        quick=False,
        **_BOTH_SEXES,
        budget=STRONG,
        tables=jobs("block sex", method("vector-pareto")),
    ),
    Case(
        name="vector-pareto, other sex", **_OTHER_SEX, budget=STRONG, tables=jobs("block sex", method("vector-pareto"))
    ),
    Case(
        name="vector-pareto, other shares",
        quick=False,
        before=firm(18, 4),
        after=firm(20, 2),
        neighbour="an establishment with other shares of women and men",
        steps=2,
        budget=STRONG,
        tables=jobs("block sex", method("vector-pareto")),
    ),
    Case(name="log-box", **_BOTH_SEXES, budget=WEAK, tables=jobs("block sex", method("log-box"))),
    Case(
        name="log-box, one worker",
        quick=False,
        before=firm(0, 3),
        after=firm(1, 3),
        neighbour=WORKER,
        budget=WEAK,
        tables=jobs("block sex", method("log-box")),
    ),
    Case(
        name="log-box, other sex", quick=False, **_OTHER_SEX, budget=WEAK, tables=jobs("block sex", method("log-box"))
    ),
    Case(name="smooth-box", **_BOTH_SEXES, budget=WEAK, tables=jobs("block sex", method("smooth-box"))),
    Case(
        name="smooth-box, one worker",
        quick=False,
        before=firm(0, 3),
        after=firm(1, 3),
        neighbour=WORKER,
        budget=WEAK,
        tables=jobs("block sex", method("smooth-box")),
    ),
    Case(
        name="smooth-box, other sex",
        quick=False,
        **_OTHER_SEX,
        budget=WEAK,
        tables=jobs("block sex", method("smooth-box")),
    ),
    Case(name="auto, one establishment", **_BOTH_SEXES, budget=WEAK, tables=jobs("block sex", method("auto", "2"))),
    Case(
        name="auto, many establishments",
        quick=False,
        before=firm(10, 10, *[Firm(women=1, men=1)] * 20),
        after=firm(11, 11, *[Firm(women=1, men=1)] * 20),
        neighbour=SIZE,
        budget=WEAK,
        tables=jobs("block sex", method("auto", "2")),
    ),
    Case(
        name="vector-bell",
        before=firm(1, 19),
        after=firm(3, 19),
        neighbour=SIZE,
        budget=STRONG,
        tables=jobs("block sex", method("vector-bell")),
    ),
    Case(
        name="vector-bell, one worker",
        quick=False,
        before=firm(0, 3),
        after=firm(1, 3),
        neighbour=WORKER,
        budget=STRONG,
        tables=jobs("block sex", method("vector-bell")),
    ),
    Case(name="box-bell", **_BOTH_SEXES, budget=WEAK, tables=jobs("block sex", method("box-bell"))),
    Case(
        name="sinh-box, one worker",
        before=firm(0, 3),
        after=firm(1, 3),
        neighbour=WORKER,
        budget=WEAK,
        tables=jobs("block sex", method("sinh-box")),
    ),
    Case(
        name="auto-bell, many establishments",
        before=firm(10, 10, *[Firm(women=1, men=1)] * 20),
        after=firm(11, 11, *[Firm(women=1, men=1)] * 20),
        neighbour=SIZE,
        budget=WEAK,
        tables=jobs("block sex", method("auto-bell", "2")),
    ),
    Case(name="laplace", quick=False, **_ONE_MORE, budget=PEOPLE, tables=jobs("block sex", method("laplace"))),
    Case(name="laplace, other sex", **_OTHER_SEX, budget=PEOPLE, tables=jobs("block sex", method("laplace"))),
    Case(
        name="node-laplace, beyond the threshold",
        before=firm(2, 2),
        after=firm(3, 2),
        neighbour=WORKER,
        budget=STRONG,
        tables=jobs("block sex", method("node-laplace", threshold="5")),
    ),
    Case(
        name="node-laplace, an establishment appears",
        quick=False,
        before=firm(0, 0, Firm(men=2)),
        after=firm(4, 0, Firm(men=2)),
        neighbour="an establishment of any size",
        budget=STRONG,
        tables=jobs("block sex", method("node-laplace", threshold="5")),
    ),
    Case(
        name="negative values raised",
        quick=False,
        **_ONE_MORE,
        budget=STRONG,
        tables=jobs("block", _PARETO, more="nonnegative = true"),
    ),
    Case(name="in parts", **_MOVE, budget=STRONG, tables=jobs("block side", _PARETO, more="parts = 3")),
    Case(
        name="in parts, without structural zeros",
        quick=False,
        before=firm(3, 2),
        after=firm(4, 2),
        neighbour=WORKER,
        budget=STRONG,
        tables=jobs("block side sex", method("vector-pareto"), more='parts = 3\nstructural_zeros = "implied"'),
    ),
    Case(
        name="joined table",
        before=firm(3, joined=True),
        after=firm(4, joined=True),
        neighbour=WORKER,
        budget=STRONG,
        tables=jobs("block side", _PARETO),
    ),
    Case(
        name="establishments not told, one appears with a worker",
        before=NOBODY,
        after=firm(1),
        neighbour="an establishment that was not there, with one worker",
        budget=STRONG,
        tables=jobs("block side", _PARETO, more="establishments = false"),
    ),
    Case(
        name="establishments not told, an empty one appears",
        before=NOBODY,
        after=firm(0),
        neighbour="an establishment that was not there, without workers",
        steps=0,
        budget=STRONG,
        tables=jobs("block side sex", method("vector-pareto"), more="establishments = false\nparts = 3"),
    ),
    Case(
        name="establishments not told, two workers",
        quick=False,
        before=NOBODY,
        after=firm(2),
        neighbour="an establishment that was not there, with two workers",
        steps=2,
        budget=WEAK,
        tables=jobs("block sex", method("log-box"), more="establishments = false"),
    ),
    Case(
        name="three tables",
        before=firm(3, 2, _ACROSS),
        after=firm(4, 2, _ACROSS),
        neighbour=WORKER,
        budget=WEAK,
        tables=jobs("block", method("smooth-pareto", "0.5"))
        + jobs("block sex", method("vector-pareto", "0.5"), name="sexes")
        + jobs("block side", method("smooth-pareto", "0.5"), name="women", more='where = { sex = "F" }'),
    ),
    Case(
        name="total pay, one worker more who earns the cap",
        **_ONE_PAID,
        budget=PAID,
        tables=total("block", _PARETO),
    ),
    Case(
        name="total pay, one worker more who earns far above the cap",
        quick=False,
        before=_few(3),
        after=_few(4, paid_more=1, more=50 * CAP),
        neighbour="one worker more, who earns fifty times the cap",
        budget=PAID,
        tables=total("block", _PARETO),
    ),
    Case(name="total pay, a tenth more", **_TENTH_PAID, budget=PAID, tables=total("block", _PARETO)),
    Case(
        name="total pay at epsilon 4",
        quick=False,
        **_TENTH_PAID,
        budget=PAID,
        tables=total("block", method("smooth-pareto", "4")),
    ),
    Case(
        name="total pay, the smaller of two",
        quick=False,
        before=firm(20, 0, Firm(women=10, pay=CAP)),
        after=firm(20, 0, Firm(women=11, pay=CAP)),
        neighbour="one worker more, who earns the cap",
        budget=PAID,
        tables=total("block", _PARETO),
    ),
    Case(
        name="total pay, two workers who earn the cap where others earn little",
        before=_few(20),
        after=_few(22, paid_more=2, more=CAP),
        neighbour="a tenth more workers, who all earn the cap: no neighbours, but two steps",
        steps=2,
        budget=PAID,
        tables=total("block", _PARETO),
    ),
    Case(
        name="total pay, a worker with other pay",
        quick=False,
        before=_few(4),
        after=_few(4, paid_more=1, more=CAP),
        neighbour="a worker who earns the cap, and not a hundredth of it",
        steps=2,
        budget=PAID,
        tables=total("block", _PARETO),
    ),
    Case(
        name="total pay by sex",
        before=Firms(firms=(Firm(women=1, men=19, pay=CAP),)),
        after=Firms(firms=(Firm(women=3, men=19, pay=CAP),)),
        neighbour="an establishment with a tenth more pay, all of it women's",
        budget=PAID,
        tables=total("block sex", _PARETO),
    ),
    Case(
        name="total pay by sex, one worker more",
        quick=False,
        **_ONE_PAID,
        budget=PAID,
        tables=total("block sex", method("vector-pareto")),
    ),
    Case(
        name="counts and total pay",
        **_ONE_PAID,
        budget=PAID,
        tables=jobs("block", method("smooth-pareto", "0.5"))
        + total("block", method("smooth-pareto", "0.5"))
        + total("block sex", method("vector-pareto", "0.5"), name="sexes"),
    ),
    Case(
        name="counts and total pay, a tenth more",
        quick=False,
        **_TENTH_PAID,
        budget=PAID,
        tables=jobs("block", method("smooth-pareto", "0.5")) + total("block", method("smooth-pareto", "0.5")),
    ),
    Case(
        name="mean pay",
        **_ONE_PAID,
        budget=PAID,
        tables=table("block", method("smooth-pareto", "2"), name="pay", statistic='mean = "pay"'),
    ),
    Case(
        name="mean pay by sex, a tenth more",
        quick=False,
        before=Firms(firms=(Firm(women=10, men=10, pay=CAP),)),
        after=Firms(firms=(Firm(women=12, men=10, pay=CAP),)),
        neighbour="an establishment with a tenth more workers and pay, all of it women's",
        budget=PAID,
        tables=table("block sex", method("smooth-pareto", "3"), name="pay", statistic='mean = "pay"'),
    ),
    Case(
        name="total pay in parts of a joined table",
        quick=False,
        before=replace(_few(3), joined=True),
        after=replace(_few(4, paid_more=1, more=CAP), joined=True),
        neighbour="one worker more, who earns the cap",
        budget=PAID,
        tables=total("block side", _PARETO, more="parts = 3"),
    ),
    Case(
        name="total pay, establishments not told",
        quick=False,
        before=NOBODY,
        after=_few(1, paid_more=1, more=CAP),
        neighbour="an establishment that was not there, with one worker who earns the cap",
        budget=PAID,
        tables=total("block side", _PARETO, more="establishments = false"),
    ),
    Case(
        name="the same question twice",
        quick=False,
        **_ONE_MORE,
        budget=STRONG,
        tables=jobs("block", _PARETO) + jobs("block", _PARETO, name="again", more="nonnegative = true"),
    ),
    Case(
        name="errors by a bought scale",
        **_TENTH,
        budget=STRONG,
        tables=jobs("block", method("smooth-pareto", "0.5", error_epsilon="0.5")),
    ),
    Case(
        name="errors by a bought scale, one worker more",
        quick=False,
        before=firm(10),
        after=firm(11),
        neighbour=WORKER,
        budget=STRONG,
        tables=jobs("block", method("smooth-pareto", "0.5", error_epsilon="0.5")),
    ),
    Case(
        name="errors by a bought scale, both sexes",
        quick=False,
        **_BOTH_SEXES,
        budget=STRONG,
        tables=jobs("block sex", method("vector-pareto", "0.5", error_epsilon="0.5")),
    ),
    Case(
        name="reconciled by bought scales",
        quick=False,
        before=firm(20, 2, _ACROSS),
        after=firm(22, 2, _ACROSS),
        neighbour=SIZE,
        budget=STRONG,
        settings="reconcile = true",
        tables=jobs("block", method("smooth-pareto", "0.4", error_epsilon="0.1"))
        + jobs("block side", method("smooth-pareto", "0.4", error_epsilon="0.1"), "sides"),
    ),
    Case(
        name="errors by a finer table",
        quick=False,
        before=firm(20, 2, _ACROSS),
        after=firm(22, 2, _ACROSS),
        neighbour=SIZE,
        budget=STRONG,
        tables=jobs("block", method("smooth-pareto", "0.5"))
        + jobs("block side", method("smooth-pareto", "0.5"), "sides"),
    ),
    Case(
        name="reconciled",
        before=firm(3, 2, _ACROSS),
        after=firm(4, 2, _ACROSS),
        neighbour=WORKER,
        budget=STRONG,
        settings="reconcile = true",
        tables=jobs("block", method("smooth-pareto", "0.5"))
        + jobs("block side", method("smooth-pareto", "0.5"), "sides"),
    ),
    Case(
        name="reconciled, negative values raised",
        quick=False,
        before=firm(20, 2, _ACROSS),
        after=firm(22, 2, _ACROSS),
        neighbour=SIZE,
        budget=STRONG,
        settings="reconcile = true",
        tables=jobs("block", method("smooth-pareto", "0.5"), more="nonnegative = true")
        + jobs("block sex", method("vector-pareto", "0.5"), name="sexes", more="nonnegative = true"),
    ),
    Case(
        name="live answers",
        before=firm(3, 2, _ACROSS),
        after=firm(4, 2, _ACROSS),
        neighbour=WORKER,
        budget=WEAK,
        tables=jobs("block", method("smooth-pareto", "0.5")) + "[live]\nbudget = 4\nmost_cells = 10000000\n",
        questions=(
            Question(by=("block", "side"), epsilon=Fraction(1, 2)),
            Question(by=("block", "sex"), epsilon=Fraction(1, 2), method="log-box"),
            Question(by=("block", "side"), epsilon=Fraction(1, 2)),
        ),
    ),
)


# Jobs at the beginning of two quarters of a panel, each of which spends half.

_AT = 'where = { quarter = ["2025-Q2", "2025-Q3"] }'
_QUARTERS = jobs("block quarter", method("smooth-pareto", "2"), more=_AT)
HELD = "one job more, held in all quarters"


def histories(*held: Held, **options: Any) -> Histories:
    """A place with these jobs."""
    return Histories(held=held, **options)


_ONE_HELD = {"before": histories(Held(jobs=3)), "after": histories(Held(jobs=4)), "neighbour": HELD}
_TENTH_HELD = {
    "before": histories(Held(jobs=20)),
    "after": histories(Held(jobs=22)),
    "neighbour": "an establishment a tenth larger in all quarters",
}
_HELD_PAID = {
    "before": histories(Held(jobs=3)),
    "after": histories(Held(jobs=3), Held(pay=CAP)),
    "neighbour": "one job more, held in all quarters, that pays the cap",
}

OF_PANELS = (
    Case(name="panel, two quarters", **_ONE_HELD, budget=STRONG, tables=_QUARTERS),
    Case(name="panel, two quarters, of 20", quick=False, **_TENTH_HELD, budget=STRONG, tables=_QUARTERS),
    Case(
        name="panel, one record less",
        before=histories(Held(jobs=3), Held()),
        after=histories(Held(jobs=3), Held(quarters=(1, 3, 4))),
        neighbour="one job without earnings in the second quarter, which both counts look at",
        budget=STRONG,
        tables=_QUARTERS,
    ),
    Case(
        name="panel, other sex",
        quick=False,
        before=histories(Held(jobs=10), Held(jobs=10, sex="M")),
        after=histories(Held(jobs=9), Held(jobs=11, sex="M")),
        neighbour="a worker of the other sex, in all quarters",
        steps=2,
        budget=STRONG,
        tables=jobs("block quarter sex", method("vector-pareto", "2"), more=_AT),
    ),
    Case(
        name="panel, an epsilon for each quarter",
        quick=False,
        **_ONE_HELD,
        budget=STRONG,
        tables=jobs("block quarter", method("smooth-pareto", '{ "2025-Q2" = 0.5, "2025-Q3" = 1.5 }'), more=_AT),
    ),
    Case(
        name="panel, by sex",
        before=histories(Held(jobs=1), Held(jobs=19, sex="M")),
        after=histories(Held(jobs=3), Held(jobs=19, sex="M")),
        neighbour="an establishment a tenth larger in all quarters",
        budget=STRONG,
        tables=jobs("block quarter sex", method("vector-pareto", "2"), more=_AT),
    ),
    Case(
        name="panel, at the end of two quarters, agreeing",
        quick=False,
        before=histories(Held(jobs=3), population="end"),
        after=histories(Held(jobs=4), population="end"),
        neighbour=HELD,
        budget=STRONG,
        settings="reconcile = true",
        tables=_QUARTERS + jobs("block quarter sex", method("vector-pareto", "2"), name="by_sex", more=_AT),
    ),
    Case(
        name="panel, totals",
        **_HELD_PAID,
        budget=PAID,
        tables=total("block quarter", method("smooth-pareto", "2"), more=_AT),
    ),
    Case(
        name="panel, counts and totals",
        quick=False,
        before=histories(Held(jobs=20, pay=CAP)),
        after=histories(Held(jobs=22, pay=CAP)),
        neighbour="an establishment with a tenth more workers and pay in all quarters",
        budget=PAID,
        tables=_QUARTERS + total("block quarter", method("smooth-pareto", "2"), more=_AT),
    ),
    Case(
        name="panel, means",
        before=histories(Held(jobs=20)),
        after=histories(Held(jobs=20), Held(pay=CAP)),
        neighbour="one job more, held in all quarters, that pays the cap",
        budget=PAID,
        tables=table("block quarter", method("smooth-pareto", "4"), statistic='mean = "pay"', name="mean", more=_AT),
    ),
)
"""Counts, totals and means of jobs at periods of a panel."""

_COUNT = 'count = "records"'
_TOTAL = 'total = "pay"'
_MEAN = 'mean = "pay"\ndecimals = 2'
_PREDICT = 'predict = { outcome = "pay", on = "rank", at = [20, 80] }\ndecimals = 1'
_SHOWN = f'{_PREDICT}\nunknown_errors = "published"'
_QUANTILES = 'quantiles = { of = "pay", at = [25, 50, 75], bins = [0, 20, 40, 60, 80, 100] }\ndecimals = 0'
_LINE = tuple(Record(person=person, rank=10 * (person % 11), pay=50) for person in range(22))
_AGAIN = tuple(replace(record, person=record.person + 22) for record in _LINE)
_STEEP = (Record(person=0, rank=0, pay=0), Record(person=1, rank=1, pay=0), Record(person=2, rank=1, pay=100))
"""The third one moves predictions from one bound of the outcome to the other."""
_FEW = people(6, pay=10)
_THREE_YEARS = tuple(Record(person=9, year=year) for year in "123")

_CLIPPED = {"largest_weight": "4", "weights_above": '"clip"'}

OF_PEOPLE = (
    Case(
        name="counts of people",
        before=group(*people(3)),
        after=group(*people(4)),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table("block", method("laplace"), statistic=_COUNT),
    ),
    Case(
        name="counts of people, another record",
        quick=False,
        before=group(*people(3), Record(person=3, side="a")),
        after=group(*people(3), Record(person=3, side="b")),
        neighbour=ANSWER,
        steps=2,
        budget=PEOPLE,
        tables=table("block side", method("laplace"), statistic=_COUNT),
    ),
    Case(
        name="counts of people by year",
        before=group(*people(2, year="1"), yearly=True),
        after=group(*people(2, year="1"), *_THREE_YEARS, yearly=True),
        neighbour=HISTORY,
        budget=PEOPLE,
        tables=table("block year", method("laplace"), statistic=_COUNT),
    ),
    Case(
        name="counts of people in one year",
        quick=False,
        before=group(*people(2, year="1"), yearly=True),
        after=group(*people(2, year="1"), *_THREE_YEARS, yearly=True),
        neighbour=HISTORY,
        budget=PEOPLE,
        tables=table("block", method("laplace"), statistic=_COUNT, more='where = { year = "2" }'),
    ),
    Case(
        name="weighted counts of records",
        before=group(*people(3, weight=2.0), weighted=True),
        after=group(*people(3, weight=2.0), Record(person=3, weight=3.6), weighted=True),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table("block side", method("laplace", largest_weight="4"), statistic=_COUNT),
    ),
    Case(
        name="counts of people in parts",
        quick=False,
        before=group(*people(2), yearly=True),
        after=group(*people(2), *_THREE_YEARS, yearly=True),
        neighbour=HISTORY,
        budget=PEOPLE,
        tables=table("block side year", method("laplace"), statistic=_COUNT, more="parts = 3"),
    ),
    Case(
        name="counts of people, an epsilon for each year",
        before=group(*people(2, year="1"), yearly=True),
        after=group(*people(2, year="1"), *_THREE_YEARS, yearly=True),
        neighbour=HISTORY,
        budget=PEOPLE,
        tables=table("block year", method("laplace", '{ "1" = 0.5, "2" = 0.25, "3" = 1 }'), statistic=_COUNT),
    ),
    Case(
        name="total of people, one with the maximum",
        before=group(*people(3)),
        after=group(*people(3), Record(person=3, pay=100)),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table("block", method("laplace"), statistic=_TOTAL),
    ),
    Case(
        name="total of people, another record",
        quick=False,
        before=group(*people(3), Record(person=3, pay=0)),
        after=group(*people(3), Record(person=3, pay=100)),
        neighbour=ANSWER,
        steps=2,
        budget=PEOPLE,
        tables=table("block", method("laplace"), statistic=_TOTAL),
    ),
    Case(
        name="weighted total of people",
        before=group(*people(3, weight=2.0), weighted=True),
        after=group(*people(3, weight=2.0), Record(person=3, pay=100, weight=3.6), weighted=True),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table("block", method("laplace", largest_weight="4"), statistic=_TOTAL),
    ),
    Case(
        name="total of people, an epsilon for each year",
        quick=False,
        before=group(*people(2, year="1"), yearly=True),
        after=group(*people(2, year="1"), *(replace(one, pay=100) for one in _THREE_YEARS), yearly=True),
        neighbour=HISTORY,
        budget=PEOPLE,
        tables=table("block year", method("laplace", '{ "1" = 0.5, "2" = 0.25, "3" = 1 }'), statistic=_TOTAL),
    ),
    Case(
        name="mean of people, one with the maximum",
        before=group(*people(6, pay=60)),
        after=group(*people(6, pay=60), Record(person=6, pay=100)),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table("block", method("laplace", "1.5"), statistic=_MEAN),
    ),
    *(
        Case(
            name=f"mean of people, one with {pay}",
            quick=False,
            before=group(*people(12, pay=50)),
            after=group(*people(12, pay=50), Record(person=12, pay=pay)),
            neighbour=PERSON,
            budget=PEOPLE,
            tables=table("block", method("laplace"), statistic=_MEAN),
        )
        for pay in (0, 50)
    ),
    Case(
        name="mean of people, the first one",
        quick=False,
        before=group(),
        after=group(Record(person=0, pay=100)),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table("block", method("laplace", "2"), statistic=_MEAN),
    ),
    Case(
        name="weighted mean of people, a heavier record clipped",
        quick=False,
        before=group(*people(12, weight=2.6), weighted=True),
        after=group(*people(12, weight=2.6), Record(person=12, pay=100, weight=50.0), weighted=True),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table("block", method("laplace", **_CLIPPED), statistic=_MEAN),
    ),
    Case(
        name="mean of people by year",
        quick=False,
        before=group(*people(8, year="1"), yearly=True),
        after=group(*people(8, year="1"), *(replace(one, pay=100) for one in _THREE_YEARS), yearly=True),
        neighbour=HISTORY,
        budget=PEOPLE,
        tables=table("block year", method("laplace", "3"), statistic=_MEAN),
    ),
    Case(
        name="noisy-regression",
        before=group(*_LINE),
        after=group(*_LINE, Record(person=22, rank=0, pay=100)),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table("block", method("noisy-regression", "2"), statistic=_SHOWN),
    ),
    Case(
        name="noisy-regression, nobody before",
        quick=False,
        before=group(),
        after=group(Record(person=0, rank=0, pay=100)),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table("block", method("noisy-regression", "2", minimum="0"), statistic=_SHOWN),
    ),
    Case(
        name="noisy-regression, another record",
        quick=False,
        before=group(*_LINE, Record(person=22, rank=0, pay=0)),
        after=group(*_LINE, Record(person=22, rank=0, pay=100)),
        neighbour=ANSWER,
        steps=2,
        budget=PEOPLE,
        tables=table("block", method("noisy-regression", "2"), statistic=_SHOWN),
    ),
    Case(
        name="global-sensitivity",
        before=group(*_STEEP[:2]),
        after=group(*_STEEP),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table("block", method("global-sensitivity", "3", minimum="0"), statistic=_PREDICT),
    ),
    Case(
        name="global-sensitivity, the mean of nobody",
        quick=False,
        before=group(),
        after=group(Record(person=0, pay=100)),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table("block", method("global-sensitivity", "2", minimum="0"), statistic='mean = "pay"\ndecimals = 0'),
    ),
    Case(
        name="theil-sen",
        before=group(*_LINE[:4]),
        after=group(*_LINE[:4], Record(person=22, rank=100, pay=100)),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table("block", method("theil-sen", "3", minimum="0", partners="1"), statistic=_SHOWN),
    ),
    Case(
        name="theil-sen, the first pair",
        quick=False,
        before=group(Record(person=0, rank=0, pay=100)),
        after=group(Record(person=0, rank=0, pay=100), Record(person=1, rank=100, pay=100)),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table("block", method("theil-sen", "3", minimum="0", partners="1"), statistic=_SHOWN),
    ),
    *(
        Case(
            name=f"noisy-quantiles, {curve}",
            quick=curve in ("adaptive", "plain", "exponential"),
            before=group(*_FEW),
            after=group(*_FEW, Record(person=6, pay=90)),
            neighbour=PERSON,
            budget=PEOPLE,
            tables=table(
                "block", method("noisy-quantiles", "1.5", curve=f'"{curve}"', minimum="0"), statistic=_QUANTILES
            ),
        )
        for curve in ("adaptive", "plain", "isotonic", "hierarchical", "exponential")
    ),
    Case(
        name="noisy-quantiles, few withheld",
        quick=False,
        before=group(*people(9, pay=10)),
        after=group(*people(10, pay=10)),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table("block", method("noisy-quantiles", "1.5", minimum="10"), statistic=_QUANTILES),
    ),
    Case(
        name="noisy-quantiles, another record",
        quick=False,
        before=group(*_FEW, Record(person=6, pay=10)),
        after=group(*_FEW, Record(person=6, pay=90)),
        neighbour=ANSWER,
        steps=2,
        budget=PEOPLE,
        tables=table("block", method("noisy-quantiles", curve='"plain"', minimum="0"), statistic=_QUANTILES),
    ),
    Case(
        name="noisy-quantiles by year",
        quick=False,
        before=group(*people(3, pay=10), yearly=True),
        after=group(*people(3, pay=10), *_THREE_YEARS, yearly=True),
        neighbour=HISTORY,
        budget=PEOPLE,
        tables=table("block year", method("noisy-quantiles", "3", curve='"plain"', minimum="0"), statistic=_QUANTILES),
    ),
    Case(
        name="mose, means given chi",
        before=group(*people(40, pay=0)),
        after=group(*people(40, pay=0), Record(person=40, pay=100)),
        neighbour=PERSON,
        budget=f"{PEOPLE}, conditional = true",
        tables=table("block", method("mose", "2", chi="100"), statistic='mean = "pay"\ndecimals = 2'),
    ),
    Case(
        name="mose, predictions given an observed chi",
        quick=False,
        before=group(*_LINE, *_AGAIN),
        after=group(*_LINE, *_AGAIN, Record(person=44, rank=0, pay=100)),
        neighbour=PERSON,
        budget=f"{PEOPLE}, conditional = true",
        tables=table("block", method("mose", "3", classes='["side"]'), statistic=_PREDICT),
    ),
    Case(
        name="weighted counts, a heavier record clipped",
        quick=False,
        before=group(*people(3, weight=2.3), weighted=True),
        after=group(*people(3, weight=2.3), Record(person=3, weight=50.0), weighted=True),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table("block", method("laplace", **_CLIPPED), statistic=_COUNT),
    ),
    Case(
        name="weighted counts by year",
        quick=False,
        before=group(*people(2, year="1", weight=0.7), weighted=True, yearly=True),
        after=group(
            *people(2, year="1", weight=0.7),
            *(Record(person=9, year=year, weight=4.0) for year in "123"),
            weighted=True,
            yearly=True,
        ),
        neighbour=HISTORY,
        budget=PEOPLE,
        tables=table("block year", method("laplace", largest_weight="4"), statistic=_COUNT),
    ),
    *(
        Case(
            name=f"weighted noisy-quantiles, {curve}",
            quick=False,
            before=group(*people(6, pay=10, weight=2.6), weighted=True),
            after=group(*people(6, pay=10, weight=2.6), Record(person=6, pay=90, weight=3.9), weighted=True),
            neighbour=PERSON,
            budget=PEOPLE,
            tables=table(
                "block",
                method("noisy-quantiles", "1.5", curve=f'"{curve}"', minimum="0", largest_weight="4"),
                statistic=_QUANTILES,
            ),
        )
        for curve in ("adaptive", "plain", "hierarchical", "exponential")
    ),
    Case(
        name="weighted noisy-quantiles, a heavier record clipped",
        quick=False,
        before=group(*people(6, pay=10, weight=2.6), weighted=True),
        after=group(*people(6, pay=10, weight=2.6), Record(person=6, pay=90, weight=50.0), weighted=True),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table(
            "block", method("noisy-quantiles", "1.5", curve='"plain"', minimum="0", **_CLIPPED), statistic=_QUANTILES
        ),
    ),
    Case(
        name="weighted noisy-regression",
        quick=False,
        before=group(*(replace(record, weight=1.3) for record in _LINE), weighted=True),
        after=group(
            *(replace(record, weight=1.3) for record in _LINE),
            Record(person=22, rank=0, pay=100, weight=4.0),
            weighted=True,
        ),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table("block", method("noisy-regression", "2", minimum="0", largest_weight="4"), statistic=_SHOWN),
    ),
    Case(
        name="weighted global-sensitivity, a light record before",
        quick=False,
        before=group(Record(person=0, pay=0, weight=0.01), weighted=True),
        after=group(Record(person=0, pay=0, weight=0.01), Record(person=1, pay=100, weight=4.0), weighted=True),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table(
            "block",
            method("global-sensitivity", "2", minimum="0", largest_weight="4"),
            statistic='mean = "pay"\ndecimals = 0',
        ),
    ),
    Case(
        name="weighted mose, means given chi",
        quick=False,
        before=group(*people(60, pay=0, weight=3.0), weighted=True),
        after=group(*people(60, pay=0, weight=3.0), Record(person=60, pay=100, weight=4.0), weighted=True),
        neighbour=PERSON,
        budget=f"{PEOPLE}, conditional = true",
        tables=table(
            "block", method("mose", "2", chi="100", largest_weight="4"), statistic='mean = "pay"\ndecimals = 2'
        ),
    ),
    Case(
        name="counts and percentiles of people",
        before=group(*people(3, pay=10)),
        after=group(*people(4, pay=10)),
        neighbour=PERSON,
        budget=PEOPLE,
        tables=table("block side", method("laplace", "0.5"), statistic=_COUNT)
        + table(
            "block",
            method("noisy-quantiles", "1", curve='"plain"', minimum="0"),
            statistic=_QUANTILES,
            name="percentiles",
        ),
    ),
)

_THREE, _FOUR = group(*people(3)), group(*people(4))
_RECORD_MORE = {"before": _THREE, "after": _FOUR, "neighbour": RECORD, "budget": CUBES}
_HEAVY = {
    "before": group(*people(3, weight=2.5), weighted=True),
    "after": group(*people(4, weight=2.5), weighted=True),
    "neighbour": RECORD,
    "budget": CUBES,
}
_LIGHT = {
    "before": group(*people(3, weight=3.0), weighted=True),
    "after": group(*people(3, weight=3.0), Record(person=3, weight=1.0), weighted=True),
    "neighbour": RECORD,
    "budget": CUBES,
}
_EMPTY = {"before": group(), "after": group(*people(1)), "neighbour": FIRST, "budget": CUBES}
_EMPTY_WEIGHTED = {
    "before": group(weighted=True),
    "after": group(Record(person=0, weight=4.0), weighted=True),
    "neighbour": FIRST,
    "budget": CUBES,
}
_OTHERS = people(3, side="b", weight=1.0)  # with half of the records of 2.4 the average is 1.2
_STRICT = 'sensitivity = "weight"\nlargest_weight = 4'
_COUNTS = frozenset({"count"})
_CONTROL = 'controls = [{ by = ["block"], epsilon = 0.5 }]'
_LEVELS = 'approach = "several-levels"\nlevels = [["block"]]'

_UNITS = 'protects = "unit"\nmost_records = 3'
_UNITS_COUNTED = 'protects = "unit", most_records = 3'
_KEY = 'key = "sfumato.key"'
_SMALL = people(2)  # the firm that stays
_THREE_MORE = tuple(Record(person=2 + place, firm=1, side="aab"[place]) for place in range(3))
_MANY_MORE = tuple(Record(person=2 + place, firm=1) for place in range(7))
_HEAVY_FIRM = tuple(replace(record, weight=4.0) for record in _THREE_MORE)


def firms(*records: Record, **options: Any) -> Group:
    """A group of records of firms."""
    return group(*records, firms=True, **options)


_UNIT_MORE = {
    "before": firms(*_SMALL),
    "after": firms(*_SMALL, *_THREE_MORE),
    "neighbour": UNIT,
    "budget": CUBES,
    "settings": _KEY,
}

OF_CUBES = (
    Case(name="cube", **_RECORD_MORE, tables=cube()),
    Case(
        name="cube, another cell",
        before=group(*people(3), Record(person=3, side="a")),
        after=group(*people(3), Record(person=3, side="b")),
        neighbour=CELL,
        steps=2,
        budget=CUBES,
        tables=cube(epsilon="0.5"),
    ),
    Case(name="cube with a small cap", quick=False, **_RECORD_MORE, tables=cube(cap=2)),
    Case(name="cube with a control", **_RECORD_MORE, tables=cube(_CONTROL, epsilon="0.5")),
    Case(
        name="cube with a control, raking",
        **_RECORD_MORE,
        tables=cube(f'{_CONTROL}\ncalibration = "raking"', epsilon="0.5"),
    ),
    Case(
        name="cube with a control, no negatives",
        **_RECORD_MORE,
        tables=cube(f"{_CONTROL}\nnonnegative = true", epsilon="0.5"),
    ),
    Case(name="cube without negatives", quick=False, **_RECORD_MORE, tables=cube("nonnegative = true")),
    Case(
        name="cube with public totals",
        quick=False,
        **_RECORD_MORE,
        tables=cube('controls = [{ by = ["block"], totals = "totals.csv" }]'),
    ),
    Case(name="cube of several levels", **_RECORD_MORE, tables=cube(_LEVELS)),
    Case(
        name="cube of several levels, whole numbers",
        **_RECORD_MORE,
        tables=cube(f"{_LEVELS}\nlevels_share = 0.5\nnonnegative = true"),
    ),
    Case(name="cube with a measure", **_RECORD_MORE, tables=cube('measures = ["pay"]')),
    Case(
        name="cube with a measure, counts", quick=False, **_RECORD_MORE, tables=cube('measures = ["pay"]'), only=_COUNTS
    ),
    Case(
        name="cube with a measure and a control",
        quick=False,
        **_RECORD_MORE,
        tables=cube(f'{_CONTROL}\nmeasures = ["pay"]', epsilon="0.5"),
    ),
    Case(name="weighted cube", **_HEAVY, tables=cube(epsilon="0.5")),
    Case(name="weighted cube, counts", quick=False, **_HEAVY, tables=cube(), only=_COUNTS),
    Case(name="weighted cube, a light record", quick=False, **_LIGHT, tables=cube(epsilon="0.5")),
    Case(
        name="weighted cube, a record of two averages",
        quick=False,
        before=group(*_OTHERS, weighted=True),
        after=group(*_OTHERS, Record(person=3, weight=2.4), weighted=True),
        neighbour=RECORD,
        averages=2,
        budget=CUBES,
        tables=cube(epsilon="0.5"),
    ),
    Case(name="weighted cube with a measure", quick=False, **_HEAVY, tables=cube('measures = ["pay"]', epsilon="0.5")),
    Case(name="weighted cube by strata", **_HEAVY, tables=cube('weights = "side"', epsilon="0.5")),
    Case(name="weighted cube with a control", quick=False, **_HEAVY, tables=cube(_CONTROL, epsilon="0.5")),
    Case(
        name="strict cube",
        quick=False,
        before=group(*people(3, weight=4), weighted=True),
        after=group(*people(4, weight=4), weighted=True),
        neighbour=RECORD,
        budget=CUBES,
        tables=cube(_STRICT, epsilon="0.5"),
    ),
    Case(
        name="strict cube in units of 2",
        before=group(*people(3, weight=3), weighted=True),
        after=group(*people(4, weight=3), weighted=True),
        neighbour=RECORD,
        budget=CUBES,
        tables=cube(f"{_STRICT}\nweight_unit = 2", epsilon="0.5"),
    ),
    Case(
        name="strict cube with a control",
        quick=False,
        before=group(*people(3, weight=4), weighted=True),
        after=group(*people(4, weight=4), weighted=True),
        neighbour=RECORD,
        budget=CUBES,
        tables=cube(f"{_STRICT}\n{_CONTROL}", epsilon="0.5"),
    ),
    Case(name="half of the empty cells", **_EMPTY, tables=cube("empty_cells = 0.5", epsilon="0.5")),
    Case(
        name="half of the empty cells, a measure",
        quick=False,
        **_EMPTY,
        tables=cube('empty_cells = 0.5\nmeasures = ["pay"]', epsilon="0.5"),
    ),
    Case(name="half of the empty cells, weighted", **_EMPTY_WEIGHTED, tables=cube("empty_cells = 0.5", epsilon="0.5")),
    Case(
        name="half of the empty cells, strict",
        **_EMPTY_WEIGHTED,
        tables=cube(f"empty_cells = 0.5\n{_STRICT}", epsilon="0.5"),
    ),
    Case(
        name="half of the empty cells, a control",
        quick=False,
        **_EMPTY,
        tables=cube(f"empty_cells = 0.5\n{_CONTROL}", epsilon="0.5"),
    ),
    Case(name="cube of units", **_UNIT_MORE, tables=cube(_UNITS, cap=40)),
    Case(
        name="cube of units, more records than are counted",
        **{**_UNIT_MORE, "after": firms(*_SMALL, *_MANY_MORE)},
        tables=cube(_UNITS, cap=40),
    ),
    Case(
        name="cube of units, one record more than are counted",
        quick=False,
        before=firms(*_SMALL, *_MANY_MORE[:6]),
        after=firms(*_SMALL, *(replace(one, side="b") for one in _MANY_MORE[6:]), *_MANY_MORE[:6]),
        neighbour=RECORD,
        budget=CUBES,
        settings=_KEY,
        tables=cube(_UNITS, cap=40),
    ),
    Case(
        name="cube of units, other records",
        quick=False,
        before=firms(*_SMALL, *(replace(one, side="a") for one in _THREE_MORE)),
        after=firms(*_SMALL, *(replace(one, side="b") for one in _THREE_MORE)),
        neighbour=OTHER_UNIT,
        steps=2,
        budget=CUBES,
        settings=_KEY,
        tables=cube(_UNITS, cap=40, epsilon="0.5"),
    ),
    Case(name="cube of units with a small cap", quick=False, **_UNIT_MORE, tables=cube(_UNITS, cap=6)),
    Case(
        name="cube of units with a control", **_UNIT_MORE, tables=cube(f"{_UNITS}\n{_CONTROL}", cap=40, epsilon="0.5")
    ),
    Case(name="cube of units at several levels", **_UNIT_MORE, tables=cube(f"{_UNITS}\n{_LEVELS}", cap=40)),
    Case(
        name="cube of units with a measure",
        quick=False,
        **_UNIT_MORE,
        tables=cube(f'{_UNITS}\nmeasures = ["pay"]', cap=40, epsilon="0.5"),
    ),
    Case(
        name="strict cube of units",
        **{
            **_UNIT_MORE,
            "before": firms(*(replace(one, weight=4.0) for one in _SMALL), weighted=True),
            "after": firms(*(replace(one, weight=4.0) for one in _SMALL), *_HEAVY_FIRM, weighted=True),
        },
        tables=cube(f"{_UNITS}\n{_STRICT}", cap=40, epsilon="0.5"),
    ),
    Case(
        name="half of the empty cells, a unit",
        **{**_UNIT_MORE, "before": firms(), "after": firms(*_THREE_MORE)},
        tables=cube(f"{_UNITS}\nempty_cells = 0.5", cap=40, epsilon="0.5"),
    ),
    Case(
        name="counts of units",
        **_UNIT_MORE,
        tables=table("block side", f"{method('laplace')}, {_UNITS_COUNTED}", statistic=_COUNT),
    ),
    Case(
        name="counts of units, more records than are counted",
        quick=False,
        **{**_UNIT_MORE, "after": firms(*_SMALL, *_MANY_MORE)},
        tables=table("block", f"{method('laplace')}, {_UNITS_COUNTED}", statistic=_COUNT),
    ),
    Case(
        name="weighted counts of units",
        **{
            **_UNIT_MORE,
            "before": firms(*_SMALL, weighted=True),
            "after": firms(*_SMALL, *_HEAVY_FIRM, weighted=True),
        },
        tables=table("block side", f"{method('laplace', largest_weight='4')}, {_UNITS_COUNTED}", statistic=_COUNT),
    ),
    Case(
        name="a cube beside a table",
        **_RECORD_MORE,
        tables=cube(epsilon="0.5") + table("block", method("laplace", "0.5"), statistic=_COUNT),
    ),
)

UNITS = 'definition = "units", alpha = 0.1, epsilon = 20, totals = ["turnover", "profit"]'
VALUE = "the value of a business a tenth larger"
HIDDEN = "a business with the floor in the place of nothing"
MEET = 10 * FLOOR
"""The value whose tenth is the floor."""


def values(by: str, protect: str, name: str = "values", more: str = "", statistic: str = 'total = "turnover"') -> str:
    """A table of values of businesses."""
    return table(by, protect, name=name, more=more, statistic=statistic)


def businesses(*records: Business, **options: Any) -> Businesses:
    """A place with these businesses."""
    return Businesses(records=records, **options)


_UNIT = method("unit-pareto")
_OTHER = Business(turnover=3 * FLOOR, profit=-2 * FLOOR)
_LARGER = {
    "before": businesses(Business(turnover=2 * MEET), _OTHER),
    "after": businesses(Business(turnover=2 * MEET + 2 * FLOOR), _OTHER),
    "neighbour": VALUE,
}
_FIRST = {
    "before": businesses(Business(), _OTHER),
    "after": businesses(Business(turnover=FLOOR), _OTHER),
    "neighbour": HIDDEN,
}


def _both_sides(turnover: int, **options: Any) -> Businesses:
    """An enterprise with a business on both sides, and a smaller one."""
    sides = (Business(turnover=turnover, side=side, enterprise=0) for side in "ab")
    return businesses(*sides, _OTHER, enterprises=True, **options)


def _enterprise(profit: int, loss: int) -> Businesses:
    """An enterprise with a profit and a loss in one cell."""
    records = (Business(profit=profit, enterprise=0), Business(profit=-loss, enterprise=0), _OTHER)
    return businesses(*records, enterprises=True)


OF_UNITS = (
    Case(name="unit-pareto", **_LARGER, budget=UNITS, tables=values("block", _UNIT)),
    Case(name="unit-pareto, the first amount", quick=False, **_FIRST, budget=UNITS, tables=values("block", _UNIT)),
    Case(
        name="unit-pareto, two steps",
        quick=False,
        before=_LARGER["before"],
        after=businesses(Business(turnover=2 * MEET + 2 * FLOOR + 22 * FLOOR // 10), _OTHER),
        neighbour="the value of a business a fifth larger",
        steps=2,
        budget=UNITS,
        tables=values("block", _UNIT),
    ),
    Case(
        name="unit-pareto, the smaller of two",
        quick=False,
        before=businesses(Business(turnover=MEET), Business(turnover=2 * MEET)),
        after=businesses(Business(turnover=MEET + FLOOR), Business(turnover=2 * MEET)),
        neighbour=VALUE,
        budget=UNITS,
        tables=values("block", _UNIT),
    ),
    Case(
        name="unit-pareto, mean",
        **_LARGER,
        budget=UNITS,
        tables=values("block", _UNIT, statistic='mean = "turnover"'),
    ),
    Case(
        name="unit-pareto, total and mean",
        quick=False,
        **_FIRST,
        budget=UNITS,
        tables=values("block", _UNIT) + values("block side", _UNIT, name="mean", statistic='mean = "turnover"'),
    ),
    Case(
        name="unit-pareto, weighted",
        quick=False,
        before=businesses(Business(turnover=2 * MEET, weight=2.5), _OTHER, weighted=True),
        after=businesses(Business(turnover=2 * MEET + 2 * FLOOR, weight=2.5), _OTHER, weighted=True),
        neighbour="the value of a business of weight 2.5 a tenth larger",
        budget=UNITS,
        tables=values("block", _UNIT),
    ),
    Case(
        name="unit-pareto, loss",
        before=businesses(Business(profit=-2 * MEET), Business(profit=MEET)),
        after=businesses(Business(profit=-2 * MEET - 2 * FLOOR), Business(profit=MEET)),
        neighbour="the loss of a business a tenth larger",
        budget=UNITS,
        tables=values("block", _UNIT, statistic='total = "profit"'),
    ),
    Case(
        name="unit-pareto, from a profit to a loss",
        quick=False,
        before=businesses(Business(profit=FLOOR), _OTHER),
        after=businesses(Business(profit=-FLOOR), _OTHER),
        neighbour="a loss in the place of a profit, both of the floor",
        steps=2,
        budget=UNITS,
        tables=values("block", _UNIT, statistic='total = "profit"'),
    ),
    Case(
        name="unit-pareto, an enterprise in two cells",
        before=_both_sides(2 * MEET),
        after=_both_sides(2 * MEET + 2 * FLOOR),
        neighbour="an enterprise a tenth larger in both its cells",
        budget=UNITS,
        tables=values("block side", method("unit-pareto", "2", most_cells="2")),
    ),
    Case(
        name="unit-pareto, an enterprise with several weights",
        quick=False,
        before=_both_sides(2 * MEET, weighted=True),
        after=_both_sides(2 * MEET + 2 * FLOOR, weighted=True),
        neighbour="an enterprise a tenth larger in both its records",
        budget=UNITS,
        tables=values("block", _UNIT),
    ),
    Case(
        name="unit-pareto, an enterprise with a profit and a loss",
        quick=False,
        before=_enterprise(2 * MEET, MEET),
        after=_enterprise(2 * MEET + 2 * FLOOR, MEET + FLOOR),
        neighbour="an enterprise whose profit and loss are both a tenth larger",
        budget=UNITS,
        tables=values("block", method("unit-pareto", "2"), statistic='total = "profit"'),
    ),
)

CASES = (*OF_JOBS, *OF_PANELS, *OF_HISTORIES, *OF_PEOPLE, *OF_CUBES, *OF_UNITS)
NAMED_UNITS = next(case for case in OF_CUBES if case.name == "cube of units")
QUICK = tuple(case for case in CASES if case.quick)
QUICK_DRAWS, FULL_DRAWS = 3_000, 40_000
