"""An ε of its own for every year of a report: what it costs, what is published, and what is refused."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from sfumato.bundle.statement import statement
from sfumato.cells import Cells, Dimension
from sfumato.checking import check, checked
from sfumato.errors import ReleaseError
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Seeded
from sfumato.plan import Plan
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.running import run
from sfumato.statistics.each_period import EachPeriod
from sfumato.statistics.people.small_samples import RecordLaplace
from tests.noise.fit import ACCEPTED, REJECTED, p_value
from tests.release.people import ALL, EMPLOYMENT, HEAD, written

COUNTS = ("epsilon = 2 }", 'epsilon = { "2001" = 0.25, "2002" = 1.75 } }')
MEANS = ("epsilon = 3, count", 'epsilon = { "2001" = 1, "2002" = 2 }, count')
PERCENTILES = (
    'method = "noisy-quantiles", epsilon = 2',
    'method = "noisy-quantiles", epsilon = { 2001 = 0.5, 2002 = 1.5 }',
)


def planned(folder: Path, *changes: tuple[str, str], text: str = HEAD + EMPLOYMENT) -> Plan:
    return check(load(written(folder, text, *changes))).plan


def published(bundle: Path, table: str) -> pd.DataFrame:
    return pq.read_table(bundle / f"tables/{table}.parquet").to_pandas()


def digests(folder: Path, *changes: tuple[str, str]) -> list[str]:
    with checked(load(written(folder, HEAD + EMPLOYMENT, *changes))) as ready:
        return [charge.question for charge in ready.identity.charges(ready.plan)]


def test_years_add_up_to_what_is_charged(tmp_path: Path) -> None:
    changes = COUNTS, MEANS, PERCENTILES
    plan = planned(tmp_path, *changes, text=ALL)
    employment, earnings, scores, percentiles = plan.tables
    assert employment.guarantee.epsilon == Fraction(1, 4) + Fraction(7, 4)
    assert (earnings.guarantee.epsilon, scores.guarantee.epsilon, percentiles.guarantee.epsilon) == (3, 3, 2)
    done = run(load(tmp_path / "release.toml"))
    assert done.balance is not None
    assert done.balance.spent_epsilon == 2 + 3 + 3 + 2


def test_every_year_is_published_with_the_error_of_its_own_noise(tmp_path: Path) -> None:
    bundle = run(load(written(tmp_path, ALL, COUNTS, MEANS, PERCENTILES))).bundle
    counts = published(bundle, "employment").groupby("year", observed=True)["error"].min()
    assert counts["2001"] == pytest.approx(Geometric(epsilon=Fraction(1, 4)).expected_magnitude, abs=0.01)
    assert counts["2002"] == pytest.approx(Geometric(epsilon=Fraction(7, 4)).expected_magnitude, abs=0.01)
    means = published(bundle, "earnings").groupby("year", observed=True)["error"].mean()
    # χ/n over what is left for the mean: 1 − 0.5 in the first year, 2 − 0.5 in the second.
    assert means["2001"] / means["2002"] == pytest.approx(3, rel=0.15)
    design = json.loads((bundle / "structure.json").read_text(encoding="utf-8"))
    spent = [table.get("period_epsilons") for table in design["tables"]]
    assert spent == [{"2001": 0.25, "2002": 1.75}, {"2001": 1, "2002": 2}, None, {"2001": 0.5, "2002": 1.5}]


def test_noise_of_every_year_has_the_scale_of_its_epsilon() -> None:
    year, place = (
        Dimension(name="year", codes=("b", "a")),
        Dimension(name="place", codes=tuple(map(str, range(20_000)))),
    )
    cells = Cells(dimensions=(place, year), positions=np.arange(40_000), columns={"count": np.full(40_000, 50)})
    one = RecordLaplace(alpha=Fraction(1), epsilon=Fraction(1, 2))
    method = EachPeriod(period="year", methods=(("a", one), ("b", one.spending(Fraction(4)))))
    drawn = method.protect(cells, Seeded(1))
    for code, epsilon in (("a", Fraction(1, 2)), ("b", Fraction(2))):
        noise = drawn.only("year", code)["value"] - 50
        assert p_value(noise, lambda j, e=epsilon: _survival(Geometric(epsilon=e), j)) > ACCEPTED
        assert p_value(noise, lambda j, e=epsilon * 9 / 10: _survival(Geometric(epsilon=Fraction(e)), j)) < REJECTED


def _survival(noise: Geometric, j: np.ndarray) -> np.ndarray:
    beyond = noise.survival(np.abs(j)) / 2  # P(|J| ≥ j)/2 is one tail
    return np.where(
        j > 0,
        beyond,
        np.where(j == 0, (1 + np.exp(noise.log_mass(np.zeros_like(j)))) / 2, 1 - noise.survival(1 - j) / 2),
    )


def test_equal_years_are_the_question_that_was_always_asked(tmp_path: Path) -> None:
    before = digests(tmp_path)
    assert digests(tmp_path, ("epsilon = 2 }", 'epsilon = { "2001" = 1, "2002" = 1 } }')) == before
    assert digests(tmp_path, COUNTS) != before


def test_the_order_in_which_years_are_written_does_not_matter(tmp_path: Path) -> None:
    turned = ("epsilon = 2 }", 'epsilon = { "2002" = 1.75, "2001" = 0.25 } }')
    codes = ('["2001", "2002"]', '["2002", "2001"]')
    assert digests(tmp_path, COUNTS) == digests(tmp_path, turned) == digests(tmp_path, turned, codes)


def test_a_second_run_gives_the_stored_answer(tmp_path: Path) -> None:
    release = load(written(tmp_path, HEAD + EMPLOYMENT, COUNTS))
    first = run(release)
    assert run(release).charged == ()
    assert first.charged == ("employment",)


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [
        ('{ "2001" = 1 }', "an epsilon for each of its periods: 2001, 2002"),
        ('{ "2001" = 1, "2002" = 1, "2003" = 1 }', "an epsilon for each of its periods"),
        ('{ "2001" = 1, "2002" = 0 }', "above 0 for every period"),
        ("{ }", "above 0 for every period"),
    ],
)
def test_a_year_that_is_missing_too_many_or_free_is_refused(tmp_path: Path, epsilon: str, words: str) -> None:
    with pytest.raises(ReleaseError, match=words):
        planned(tmp_path, ("epsilon = 2 }", f"epsilon = {epsilon} }}"))


def test_a_table_that_is_not_by_year_has_one_epsilon(tmp_path: Path) -> None:
    one = ('"sector", "year"]', '"sector"]\nwhere = { year = "2001" }')
    with pytest.raises(ReleaseError, match="not by its period"):
        planned(tmp_path, COUNTS, one)


def test_the_statement_says_what_each_year_spends(tmp_path: Path) -> None:
    said = statement(planned(tmp_path, COUNTS))
    assert "each spends an epsilon of its own, by year: 2001: 0.25, 2002: 1.75." in said
    assert "Least accurate is year 2001: the noise is typically 4 people. Most accurate is year 2002" in said


def test_the_confidential_report_goes_year_by_year(tmp_path: Path) -> None:
    release = load(written(tmp_path, ALL, COUNTS, MEANS, PERCENTILES))
    run(release)
    found = assess(release)
    earnings = next(table for table in found.people if table.name == "earnings")
    assert [place for place, _ in earnings.envelopes] == ["mean, 2001", "mean, 2002"]
    assert sum(part.values for part in earnings.by_size) == 2 * 3 * 2
