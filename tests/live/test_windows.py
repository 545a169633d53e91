"""Ad-hoc questions spend the windows over several periods as published tables do."""

from collections.abc import Iterator
from fractions import Fraction

import pytest

from sfumato.errors import BudgetError
from sfumato.live import ChargedSession, open_charged
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.windows import WindowOverdraft
from sfumato.release import load
from sfumato.running import run
from sfumato.serve.live.answer_table import _over_windows
from tests.series.office import RELEASE, make_office


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChargedSession]:
    """The second of two quarters that may spend 5 together: 2 on the tables of the first, and 3 on questions."""
    text = RELEASE.replace("epsilon = 6 }", "epsilon = 6, window = { periods = 2, epsilon = 5 } }")
    file = make_office(tmp_path_factory.mktemp("office") / "o", text)
    run(load(file, "2026-Q1"))
    with open_charged(load(file, "2026-Q2"), epsilon=Fraction(4)) as found:
        yield found


def spent(live: ChargedSession) -> dict[str, Fraction]:
    [calendar] = Ledger.open(live.release.ledger).calendars("jobs")
    return {cost.period: cost.epsilon for cost in calendar.costs}


def test_questions_count_in_the_window_and_are_refused_beyond_it(live: ChargedSession) -> None:
    assert live.left().remaining_epsilon == 3, "less than the 4 that questions may cost, and the 6 of the quarter"
    live.answer(live.plan(by=("place",), epsilon=Fraction(2)))
    assert spent(live) == {"2026-Q1": 2, "2026-Q2": 2}
    more = live.plan(by=("place",), where={"place": ("A",)}, epsilon=Fraction(3, 2))
    with pytest.raises(WindowOverdraft, match="2026-Q1 2, 2026-Q2 2"):
        live.answer(more)
    assert isinstance(live.price(more).refusal, WindowOverdraft)
    live.answer(live.plan(by=("place",), epsilon=Fraction(2)))
    assert spent(live) == {"2026-Q1": 2, "2026-Q2": 2}, "what was answered costs nothing more"


def test_an_analyst_is_not_told_what_others_spent_of_the_window(live: ChargedSession) -> None:
    with pytest.raises(BudgetError) as refused:
        live.charge(live.plan(by=("place",), where={"place": ("B",)}, epsilon=Fraction(2)), "ann")
    assert "which analysts are not told" in str(refused.value)
    assert "2026-Q1" not in str(refused.value)
    [said] = _over_windows(live)
    assert "any 2 consecutive quarters" in said
    assert "charged so far" not in said
