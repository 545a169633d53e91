import numpy as np
import pytest

from sfumato.noise.randomness import OperatingSystem, Randomness, Repeatable, Seeded

pytestmark = pytest.mark.fresh_draws


@pytest.mark.parametrize("source", [OperatingSystem(), Seeded(1)])
def test_words_are_as_many_as_asked_and_never_repeat(source: Randomness) -> None:
    first, second = source.words(500), source.words(500)
    assert first.dtype == np.uint64
    assert len(np.unique(np.concatenate([first, second]))) == 1000
    assert len(source.words(0)) == 0


@pytest.mark.parametrize("source", [OperatingSystem(), Seeded(1)])
def test_every_bit_of_a_word_is_set_half_the_time(source: Randomness) -> None:
    words = source.words(40_000)
    shares = [np.mean((words >> np.uint64(bit)) & np.uint64(1)) for bit in range(64)]
    assert np.allclose(shares, 0.5, atol=0.02)  # eight standard errors


def test_the_same_seed_repeats_the_stream_and_another_does_not() -> None:
    assert np.array_equal(Seeded(5).words(100), Seeded(5).words(100))
    assert not np.array_equal(Seeded(5).words(100), Seeded(6).words(100))


def test_a_seeded_stream_does_not_depend_on_how_it_is_cut() -> None:
    cut = Seeded(5)
    assert np.array_equal(np.concatenate([cut.words(30), cut.words(70)]), Seeded(5).words(100))


def test_a_purpose_has_a_stream_and_a_key_of_its_own() -> None:
    one, again, other = Repeatable(5, "a", 1), Repeatable(5, "a", 1), Repeatable(5, "a", 2)
    assert len(one.key) == 16
    assert one.key == again.key != other.key
    assert np.array_equal(one.words(100), again.words(100))
    assert not np.array_equal(Repeatable(5, "a", 1).words(100), other.words(100))
