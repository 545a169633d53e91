"""The cell-key table: its moments, what it never publishes, and the frequencies with which it moves counts."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from sfumato.errors import MethodError
from sfumato.noise.randomness import Seeded
from sfumato.statistics.totals.cell_keys import CellKeyTable, most_even, variance_bounds

TABLE = CellKeyTable(variance=Fraction(3), deviation=5)
TABLES = [
    TABLE,
    CellKeyTable(variance=Fraction(2), deviation=4),
    CellKeyTable(variance=Fraction(5), deviation=5),
    CellKeyTable(variance=Fraction("2.000001"), deviation=6),
    CellKeyTable(variance=Fraction(1, 2), deviation=3, smallest=1),
    CellKeyTable(variance=Fraction(4), deviation=4, smallest=4),
    CellKeyTable(variance=Fraction(7), deviation=12, smallest=5),
]
SEVERAL = pytest.mark.parametrize("table", TABLES, ids=repr)


@SEVERAL
def test_every_row_is_right_on_average_and_has_the_stated_variance(table: CellKeyTable) -> None:
    for count in range(1, table.rows):
        moves, chances = table.moves(count), table.probabilities[count]
        assert sum(chances) == 1
        assert all(chance >= 0 for chance in chances)
        assert abs(sum(v * p for v, p in zip(moves, chances, strict=True))) < Fraction(1, 2**55)
        assert abs(sum(v * v * p for v, p in zip(moves, chances, strict=True)) - table.variance) < Fraction(1, 2**50)


@SEVERAL
def test_no_move_leads_to_a_negative_or_a_small_count_or_too_far(table: CellKeyTable) -> None:
    for count in range(table.rows + 5):
        for move in table.moves(count):
            assert abs(move) <= table.deviation
            assert count + move == 0 or count + move >= table.smallest


@SEVERAL
def test_rows_repeat_from_the_last_one_on_and_not_before(table: CellKeyTable) -> None:
    last = table.rows - 1
    assert table.moves(last) == table.moves(last + 1) == table.moves(10**9)
    assert table.moves(last - 1) != table.moves(last) or table.smallest == 1
    assert table.moves(last) == tuple(range(-table.deviation, table.deviation + 1))


@given(
    counts=st.lists(st.integers(0, 10**12), min_size=1, max_size=50),
    seed=st.integers(0, 2**32),
    table=st.sampled_from(TABLES),
)
def test_published_counts_keep_zero_and_are_never_small_or_negative_or_far_off(
    counts: list[int], seed: int, table: CellKeyTable
) -> None:
    true = np.array(counts)
    published = table.published(true, Seeded(seed).words(len(true)))
    assert np.all(published[true == 0] == 0)
    assert np.all((published == 0) | (published >= table.smallest))
    assert np.all(np.abs(published - true) <= table.deviation)


@pytest.mark.parametrize("word", [0, 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1])
@SEVERAL
def test_the_outermost_words_give_allowed_moves_too(table: CellKeyTable, word: int) -> None:
    true = np.arange(table.rows + 3)
    published = table.published(true, np.full(len(true), word, dtype=np.uint64))
    for count, after in zip(true, published, strict=True):
        assert after - count in table.moves(int(count))


@pytest.mark.parametrize("count", [1, 2, 3, 6, 8, 1_000])
def test_counts_move_as_often_as_the_table_says_and_not_five_percent_off(count: int) -> None:
    n = 400_000
    published = TABLE.published(np.full(n, count), Seeded(count).words(n))
    row = min(count, TABLE.rows - 1)
    chances = np.array([float(chance) for chance in TABLE.probabilities[row]])
    observed = np.array([(published - count == move).sum() for move in TABLE.moves(row)])
    assert chisquare(observed, chances * n).pvalue > 1e-3
    common = int(chances.argmax())
    off = chances.copy()
    off[common] *= 1.05
    off[np.arange(len(off)) != common] *= (1 - off[common]) / (1 - chances[common])
    assert chisquare(observed, off * n).pvalue < 1e-6


def test_the_same_word_gives_the_same_answer_whatever_cells_stand_around() -> None:
    counts, words = np.arange(1_000) % 20, Seeded(5).words(1_000)
    whole = TABLE.published(counts, words)
    order = np.random.default_rng(1).permutation(1_000)
    assert np.array_equal(TABLE.published(counts[order], words[order]), whole[order])
    assert len(TABLE.published(counts[:0], words[:0])) == 0


def test_the_table_stays_as_it_is_in_every_version() -> None:
    assert [int(chance * 2**63) for chance in TABLE.probabilities[1]] == [
        6774285827151229666,
        1261021177796097307,
        671427483173184876,
        345226721631839370,
        171410827102424589,
    ]


@given(
    moves=st.sets(st.integers(-8, 8), min_size=3).map(sorted).filter(lambda moves: moves[0] < 0 < moves[-1]),
    place=st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=100),
)
def test_no_distribution_with_the_same_moments_has_more_entropy(moves: list[int], place: Fraction) -> None:
    least, most = variance_bounds(moves)
    chances = np.array([float(p) for p in most_even(moves, least + place * (most - least))]) if most > least else None
    if chances is None:
        return
    # The logarithm of a distribution of greatest entropy lies in the span of the constraints 1, v and v².
    powers = np.vander(np.array(moves, dtype=float), 3)
    positive = chances > 1e-12
    fitted, *_ = np.linalg.lstsq(powers[positive], np.log(chances[positive]), rcond=None)
    assert np.allclose(powers[positive] @ fitted, np.log(chances[positive]), atol=1e-6)


@pytest.mark.parametrize(
    ("variance", "deviation", "smallest", "nearest"),
    [
        ("1", 5, 3, "variance = 2"),
        ("6", 5, 3, "variance = 5"),
        ("0", 5, 1, "variance = 1/10"),
        ("10", 10, 8, "deviation = 16 and variance = 16"),
    ],
)
def test_what_no_table_can_have_is_refused_with_the_nearest_that_one_can(
    variance: str, deviation: int, smallest: int, nearest: str
) -> None:
    with pytest.raises(MethodError, match="right on average") as refusal:
        CellKeyTable(variance=Fraction(variance), deviation=deviation, smallest=smallest)
    assert nearest in refusal.value.do
    named = dict(part.split(" = ") for part in refusal.value.do.removeprefix("choose ").split(" and "))
    CellKeyTable(
        variance=Fraction(named["variance"]), deviation=int(named.get("deviation", deviation)), smallest=smallest
    )


@pytest.mark.parametrize(("deviation", "smallest"), [(0, 1), (51, 3), (2, 3), (5, 0)])
def test_a_deviation_that_cannot_jump_over_the_small_counts_is_refused(deviation: int, smallest: int) -> None:
    with pytest.raises(MethodError, match="a smallest count"):
        CellKeyTable(variance=Fraction(2), deviation=deviation, smallest=smallest)


def test_a_negative_count_is_refused_without_being_named() -> None:
    with pytest.raises(MethodError, match="negative") as refusal:
        TABLE.published(np.array([3, -77]), Seeded(1).words(2))
    assert "77" not in str(refusal.value)
