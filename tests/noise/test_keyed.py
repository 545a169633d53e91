"""The keyed function: the same words for ever, unrelated across units, purposes and keys, and secret."""

import subprocess
import sys
from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from sfumato.noise.keyed import Keyed, hashes

KEYED = Keyed(key=bytes(range(16)))
NAMES = [str(number) for number in range(100_000)]
UNITS = hashes(NAMES)


def enciphered(key: bytes, block: bytes) -> bytes:
    return Cipher(AES(key), ECB()).encryptor().update(block)


def plain_hash(name: str) -> int:
    """The hash written down one block at a time, as its description says."""
    content = name.encode()
    message = len(content).to_bytes(8, "little") + content
    state = bytes(16)
    for begin in range(0, len(message), 16):
        block = message[begin : begin + 16].ljust(16, b"\0")
        state = enciphered(b"sfumato: hashing", bytes(a ^ b for a, b in zip(state, block, strict=True)))
    return int.from_bytes(state[:8], "little")


def looks_random(words: np.ndarray) -> bool:
    """Whether words are uniform, and every bit set as often as not and apart from the same bit of the next word."""
    bits = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1).astype(float)
    limit = 5 * 0.5 / np.sqrt(len(words))
    together = (bits[1:] == bits[:-1]).mean(axis=0)
    return bool(
        kstest(words / 2.0**64, "uniform").pvalue > 1e-3
        and np.abs(bits.mean(axis=0) - 0.5).max() < limit
        and np.abs(together - 0.5).max() < limit
    )


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 39, 40, 41, 100, 1000])
@pytest.mark.parametrize("letter", ["x", "0", "\0", "é", "北", "𝔛"])
def test_a_hash_is_what_its_description_says(length: int, letter: str) -> None:
    assert hashes([letter * length]).tolist() == [plain_hash(letter * length)]


@given(st.lists(st.text(max_size=60)), st.integers(0, 3))
def test_a_hash_does_not_depend_on_the_container_nor_on_the_company(names: list[str], cut: int) -> None:
    wanted = [plain_hash(name) for name in names]
    halves = [names[:cut], names[cut:]]
    containers: list[Sequence[str] | pa.Array | pa.ChunkedArray] = [
        names,
        tuple(names),
        pa.array(names, type=pa.string()),
        pa.array(names, type=pa.large_string()),
        pa.chunked_array(halves, type=pa.string()),
        pa.chunked_array(halves, type=pa.large_string()),
    ]
    assert all(hashes(container).tolist() == wanted for container in containers)
    assert hashes(pa.array(names, type=pa.string())[cut:]).tolist() == wanted[cut:]


def test_a_hash_does_not_depend_on_how_many_are_made_at_once() -> None:
    names = [*NAMES, "long " * 20]
    together = hashes(names)
    assert together[[0, 65_535, 65_536, -1]].tolist() == [plain_hash(names[i]) for i in (0, 65_535, 65_536, -1)]


def test_hashes_of_different_units_differ() -> None:
    assert len(np.unique(UNITS)) == len(UNITS)
    similar = ["", "\0", "\0\0", "a", "a\0", "a" * 8, "a" * 8 + "\0", "a" * 24, "a" * 24 + "\0", "A", " a", "a "]
    assert len(set(hashes(similar).tolist())) == len(similar)
    assert looks_random(UNITS)


@pytest.mark.parametrize("units", [[], (), pa.array([], pa.string()), pa.chunked_array([], pa.large_string())])
def test_no_units_have_no_hashes(units: Sequence[str]) -> None:
    assert hashes(units).tolist() == []
    assert hashes(units).dtype == np.uint64


@pytest.mark.parametrize("units", [["a", None], pa.array(["a", None]), pa.chunked_array([["a"], [None]])])
def test_a_unit_without_a_name_is_refused(units: Sequence[str]) -> None:
    with pytest.raises(ValueError, match="without a name"):
        hashes(units)


@pytest.mark.parametrize("units", [[17], pa.array([17]), pa.array([b"17"])])
def test_a_unit_that_is_not_named_by_text_is_refused(units: Sequence[str]) -> None:
    with pytest.raises(TypeError):
        hashes(units)


def test_words_stay_as_they_are_in_every_version_and_process() -> None:
    code = """
from sfumato.noise.keyed import Keyed, hashes
keyed, units = Keyed(key=bytes(range(16))), hashes(["1", "12-345678", "Zürich"])
print(*units)
print(*keyed.words(units, purpose="p"))
print(*keyed.words_of_pairs(units, units[::-1], purpose="p"))
print(*keyed.stream("p").words(3))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "3132504159614822169 6217449800273296532 12754551091314718210",
        "4867831939675496047 6404483031387358180 12232849128827141644",
        "14844937356510393110 7786516331237825282 12879721588217792151",
        "11388956057329761083 8000920788052177067 6884850125966526064",
    ]


def test_a_word_is_the_first_half_of_the_enciphered_hash_and_purpose() -> None:
    tag = blake2b(b"factor", digest_size=8).digest()
    block = enciphered(KEYED.key, int(UNITS[5]).to_bytes(8, "little") + tag)
    assert int(KEYED.words(UNITS, purpose="factor")[5]) == int.from_bytes(block[:8], "little")


def test_words_and_words_of_pairs_depend_on_the_question_and_not_on_its_company() -> None:
    order = np.random.default_rng(1).permutation(len(UNITS))
    other = UNITS[::-1].copy()
    for some in (slice(0, 0), slice(3, 4), order):
        assert np.array_equal(KEYED.words(UNITS[some], purpose="p"), KEYED.words(UNITS, purpose="p")[some])
        pairs = KEYED.words_of_pairs(UNITS[some], other[some], purpose="p")
        assert np.array_equal(pairs, KEYED.words_of_pairs(UNITS, other, purpose="p")[some])


def test_every_kind_of_word_looks_random_and_has_nothing_to_do_with_any_other() -> None:
    counted = np.arange(1, 100_001, dtype=np.uint64)  # hashes that differ in few bits
    zero = np.zeros_like(counted)
    drawn = [
        KEYED.words(counted, purpose="p"),
        KEYED.words(counted, purpose="q"),
        Keyed(key=bytes(16)).words(counted, purpose="p"),
        KEYED.words_of_pairs(counted, zero, purpose="p"),
        KEYED.words_of_pairs(zero, counted, purpose="p"),
        KEYED.words_of_pairs(counted, counted, purpose="p"),
        KEYED.words_of_pairs(counted, zero, purpose="q"),
        KEYED.stream("p").words(len(counted)),
        KEYED.stream("q").words(len(counted)),
    ]
    assert all(map(looks_random, drawn))
    assert all(looks_random(one ^ other) for one, other in pairwise(drawn))
    assert len(np.unique(np.concatenate(drawn))) == len(drawn) * len(counted)


def test_words_that_are_not_random_are_noticed() -> None:
    assert not looks_random(np.arange(100_000, dtype=np.uint64))
    assert not looks_random(KEYED.stream("p").words(100_000) >> np.uint64(1))
    assert not looks_random(np.repeat(KEYED.stream("p").words(50_000), 2))


def test_the_order_of_a_pair_matters() -> None:
    first, second = UNITS[:1000], UNITS[1000:2000]
    one, other = (KEYED.words_of_pairs(*pair, purpose="p") for pair in ((first, second), (second, first)))
    assert not (one == other).any()


def test_pairs_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="as many"):
        KEYED.words_of_pairs(UNITS[:1], UNITS[:2], purpose="p")


@given(st.lists(st.integers(0, 50)))
def test_a_stream_is_the_same_however_it_is_drawn_and_never_repeats(asked: list[int]) -> None:
    stream = KEYED.stream("p")
    drawn = np.concatenate([np.empty(0, np.uint64), *map(stream.words, asked)])
    assert np.array_equal(drawn, KEYED.stream("p").words(sum(asked)))
    assert len(np.unique(drawn)) == sum(asked)


def test_a_long_stream_is_the_short_ones_one_after_the_other() -> None:
    whole, stream = KEYED.stream("p").words(100_001), KEYED.stream("p")
    assert np.array_equal(whole, np.concatenate([stream.words(n) for n in (40_001, 32_767, 1, 27_232)]))


def test_the_key_is_in_no_text_and_no_error() -> None:
    texts = [repr(KEYED), str(KEYED), repr(KEYED.stream("p"))]
    with pytest.raises(ValueError, match="16 bytes") as refusal:
        Keyed(key=b"short secret")
    assert not any(secret in text for text in [*texts, str(refusal.value)] for secret in ("secret", str(KEYED.key)))
