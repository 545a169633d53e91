"""Permanent chance from a key: pseudo-random words for units and for the cells of any table."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from numpy.typing import NDArray

from sfumato.arrays import Words
from sfumato.cells import Cells
from sfumato.noise.randomness import Randomness

# The decimal text of integers as words of eight bytes, by arithmetic and not by writing it.

LIMIT = 10**16
"""Integers from 0 to below this have at most sixteen digits: two words."""
_EIGHT = np.uint64(10**8)
_ZEROS = np.uint64(0x3030303030303030)  # the text "00000000"
_TENS = np.array([10**n for n in range(1, 16)], dtype=np.uint64)


def decimal_words(numbers: Words) -> tuple[Words, Words, Words]:
    """The length of each number's text, its first eight bytes and its next eight, zeros after its end.

    >>> lengths, first, second = decimal_words(np.array([17, 123456789], dtype=np.uint64))
    >>> lengths.tolist(), first.tobytes().replace(b"\\0", b"."), second.tobytes().replace(b"\\0", b".")
    ([2, 9], b'17......12345678', b'........9.......')
    """
    greatest = int(numbers.max(initial=0))
    if greatest >= LIMIT:
        raise ValueError("numbers of more than sixteen digits do not fit in two words")
    shortest, longest = (len(str(number)) for number in (int(numbers.min(initial=greatest)), greatest))
    lengths = np.full(len(numbers), shortest, dtype=np.uint64)
    for ten in _TENS[shortest - 1 : longest - 1]:
        lengths += numbers >= ten
    if greatest < _EIGHT:
        return lengths, _digits(numbers) >> ((np.uint64(8) - lengths) * np.uint64(8)), np.zeros_like(numbers)
    left, right = _digits(numbers // _EIGHT), _digits(numbers % _EIGHT)
    # Sixteen digits with zeros in front, from which the first bytes are dropped; a shift by 64 bits is done as two.
    dropped = (np.uint64(16) - lengths) * np.uint64(8)
    short = dropped >= 64
    within = np.where(short, dropped - np.uint64(64), dropped)
    kept = left >> within | (right << np.uint64(1)) << (np.uint64(63) - within)
    return lengths, np.where(short, right >> within, kept), np.where(short, np.uint64(0), right >> within)


def _digits(numbers: Words) -> Words:
    """The eight digits of numbers below 10⁸ as text, the first in the lowest byte: halves, quarters, then digits."""
    halves = numbers // np.uint64(10**4)
    halves |= (numbers - halves * np.uint64(10**4)) << np.uint64(32)
    pairs = (halves * np.uint64(10486)) >> np.uint64(20) & np.uint64(0x7F0000007F)  # 10486/2²⁰: a hundredth, rounded up
    pairs |= (halves - pairs * np.uint64(100)) << np.uint64(16)
    digits = (pairs * np.uint64(103)) >> np.uint64(10) & np.uint64(0x000F000F000F000F)  # 103/2¹⁰: a tenth, rounded up
    digits |= (pairs - digits * np.uint64(10)) << np.uint64(8)
    digits += _ZEROS
    return digits


# The keyed function behind everything permanent: pseudo-random words for units, from a secret key alone.

Hashes = NDArray[np.uint64]

KEY_BYTES = 16
_PIECE = 1 << 14  # blocks enciphered at a time: few enough for the processor's cache
_PUBLIC = b"sfumato: hashing"  # hashes hide nothing, they only make numbers of names
_FIRST_BYTES = np.array([256**n - 1 for n in range(9)], dtype=np.uint64)
"""The mask of the first n bytes of a word, for n from 0 to 8."""


@dataclass(frozen=True, kw_only=True)
class Keyed:
    """A pseudo-random function under a secret key: the same words for the same questions, on every machine.

    AES-128 serves as the function: a word is a half of the block that holds the question, enciphered. Whoever lacks the
    key cannot tell the words from fair coins, nor the words of one purpose from those of another.

    >>> keyed = Keyed(key=bytes(16))
    >>> keyed
    Keyed()
    >>> bool(keyed.words(hashes(["17"]), purpose="factor") == keyed.words(hashes(["17"]), purpose="edge"))
    False
    """

    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES:
            raise ValueError(f"the key must have {KEY_BYTES} bytes")

    def words(self, units: Hashes, *, purpose: str) -> Words:
        """A word for every unit: AES of its hash beside the purpose."""
        encipher, drawn = _Blocks(_cipher(self.key), len(units)), np.empty(len(units), dtype=np.uint64)
        tag = _tag(purpose)
        for piece in _pieces(len(units)):
            drawn[piece] = encipher(units[piece], tag)[0]
        return drawn

    def words_of_pairs(self, first: Hashes, second: Hashes, *, purpose: str) -> Words:
        """A word for every ordered pair of units; sort the two where their order must not matter.

        The first unit is enciphered beside the purpose, the second is added to that and all enciphered again (CBC-MAC).
        """
        if len(first) != len(second):
            raise ValueError("pairs need as many first units as second ones")
        encipher, drawn = _Blocks(_cipher(self.key), len(first)), np.empty(len(first), dtype=np.uint64)
        tag = _tag(purpose, person=b"pairs")
        for piece in _pieces(len(first)):
            left, right = encipher(first[piece], tag)
            drawn[piece] = encipher(left ^ second[piece], right)[0]
        return drawn

    def stream(self, purpose: str) -> Randomness:
        """A stream of words that begins anew, and with the same words, whenever it is asked for."""
        return _Stream(self, purpose)


class _Stream:
    """The enciphered numbers 0, 1, 2, …, two words of each: AES in counter mode."""

    def __init__(self, keyed: Keyed, purpose: str) -> None:
        self._cipher, self._tag, self._drawn = _cipher(keyed.key), _tag(purpose, person=b"stream"), 0

    def words(self, n: int, /) -> Words:
        """The next n words, the same however many are asked for at a time."""
        begin, end = self._drawn, self._drawn + n
        self._drawn = end
        numbers = np.arange(begin // 2, (end + 1) // 2, dtype=np.uint64)
        encipher, words = _Blocks(self._cipher, len(numbers)), np.empty((len(numbers), 2), dtype=np.uint64)
        for piece in _pieces(len(numbers)):
            words[piece, 0], words[piece, 1] = encipher(numbers[piece], self._tag)
        return words.reshape(-1)[begin % 2 : begin % 2 + n]


def hashes(units: Iterable[str] | pa.Array | pa.ChunkedArray) -> Hashes:
    """The 64-bit hash of every unit's name as text, which is the same on every engine and machine.

    A name is preceded by its length in eight bytes and filled with zeros to whole blocks, which pass through AES one
    after the other under a key that everybody knows (CBC-MAC). Of 10 million names, two share a hash with a probability
    below one in 300,000; they would share their factor.

    >>> hashes(["17", "Zürich"]).tolist() == hashes(pa.array(["17", "Zürich"])).tolist()
    True
    """
    if isinstance(units, pa.ChunkedArray):
        return np.concatenate([np.empty(0, dtype=np.uint64), *map(hashes, units.chunks)])
    names = units if isinstance(units, pa.Array) else pa.array(list(units), type=pa.large_string())
    if names.null_count:
        raise ValueError("a unit without a name has no hash")
    if not (pa.types.is_string(names.type) or pa.types.is_large_string(names.type)):
        raise TypeError(f"units are named by text, not by {names.type}")
    begins, lengths, text = _unpacked(names)
    encipher, hashed = _Blocks(_cipher(_PUBLIC), len(names)), np.empty(len(names), dtype=np.uint64)
    for piece in _pieces(len(names)):
        hashed[piece] = _hashed(encipher, begins[piece], lengths[piece], text)
    return hashed


def hashes_of_integers(units: pa.Array | pa.ChunkedArray) -> Hashes:
    """The hashes of units whose names are integers: those of their decimal text, several times as quickly.

    >>> hashes_of_integers(pa.array([17, -4])).tolist() == hashes(["17", "-4"]).tolist()
    True
    """
    if isinstance(units, pa.ChunkedArray):
        return np.concatenate([np.empty(0, dtype=np.uint64), *map(hashes_of_integers, units.chunks)])
    if units.null_count:
        raise ValueError("a unit without a name has no hash")
    if not pa.types.is_integer(units.type):
        raise TypeError(f"units are named by integers, not by {units.type}")
    numbers = units.to_numpy()
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < LIMIT:
        return hashes(units.cast(pa.large_string()))
    encipher, hashed = _Blocks(_cipher(_PUBLIC), len(numbers)), np.empty(len(numbers), dtype=np.uint64)
    for piece in _pieces(len(numbers)):
        lengths, first, second = decimal_words(numbers[piece].astype(np.uint64))
        left, right = encipher(lengths, first)
        hashed[piece] = left
        longer = np.flatnonzero(lengths > 8)
        if len(longer):
            hashed[piece.start + longer] = encipher(left[longer] ^ second[longer], right[longer])[0]
    return hashed


def _unpacked(names: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64], Words]:
    """Where every name begins, how many bytes it has, and the word that begins at every byte of the text."""
    _, positions, content = names.buffers()
    if not len(names):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.uint64)
    width = np.int32 if pa.types.is_string(names.type) else np.int64
    ends = np.frombuffer(positions, dtype=width)[names.offset : names.offset + len(names) + 1].astype(np.int64)
    text = np.zeros(ends[-1] - ends[0] + 8, dtype=np.uint8)  # a word can begin at the end of the last name
    if content is not None:
        text[:-8] = np.frombuffer(content, dtype=np.uint8)[ends[0] : ends[-1]]
    words = np.ndarray(shape=len(text) - 7, dtype="<u8", buffer=text.data, strides=(1,))
    return ends[:-1] - ends[0], np.diff(ends), words


def _hashed(encipher: "_Blocks", begins: NDArray[np.int64], lengths: NDArray[np.int64], text: Words) -> Hashes:
    left, right = (half.copy() for half in encipher(lengths.astype(np.uint64), _word(begins, lengths, text, at=0)))
    for at in range(8, int(lengths.max()), 16):
        longer = np.flatnonzero(lengths > at)
        begun, long = begins[longer], lengths[longer]
        left[longer], right[longer] = encipher(
            left[longer] ^ _word(begun, long, text, at=at), right[longer] ^ _word(begun, long, text, at=at + 8)
        )
    return left


def _word(begins: NDArray[np.int64], lengths: NDArray[np.int64], text: Words, *, at: int) -> Words:
    """The eight bytes of every name from a position on, zeros after its end."""
    word: Words = text[np.minimum(begins + at, len(text) - 1)] & _FIRST_BYTES[np.clip(lengths - at, 0, 8)]
    return word


class _Blocks:
    """Enciphers blocks, given as halves, in room that is used again: new memory would take longer than the cipher."""

    def __init__(self, cipher: CipherContext, most: int) -> None:
        self._cipher, room = cipher, min(most, _PIECE)
        self._plain = np.empty((room, 2), dtype="<u8")  # the order of bytes is part of the function
        self._enciphered = np.empty((room + 1, 2), dtype="<u8")  # the cipher asks for a block of room beyond

    def __call__(self, left: Words, right: Words | int) -> tuple[Words, Words]:
        """Both halves of at most a piece of blocks, until the next are asked for."""
        plain, enciphered = self._plain[: len(left)], self._enciphered[: len(left) + 1]
        plain[:, 0], plain[:, 1] = left, right
        self._cipher.update_into(plain.view(np.uint8).data, enciphered.view(np.uint8).data)
        return enciphered[:-1, 0], enciphered[:-1, 1]


def _cipher(key: bytes) -> CipherContext:
    # Each block is enciphered by itself on purpose: the cipher serves as a function of one block.
    return Cipher(AES(key), ECB()).encryptor()  # noqa: S305 (each block alone is the keyed function)


def _pieces(n: int) -> Iterator[slice]:
    return (slice(begin, min(begin + _PIECE, n)) for begin in range(0, n, _PIECE))


def _tag(purpose: str, *, person: bytes = b"") -> int:
    """The purpose as a number; kinds of question differ in `person`, so that none is ever answered for another."""
    return int.from_bytes(blake2b(purpose.encode(), digest_size=8, person=person).digest(), "little")


# Permanent chance of cells: a keyed word for every cell, the same in every table, order and release.


@dataclass(kw_only=True, eq=False)
class CellWords:
    """Randomness for the cells of one table, one word each whenever as many are asked for; it shows nothing.

    A cell is known by what it is about: the code of each of its attributes and the codes it was filtered by. How the
    table is laid out, which other cells it has, and what else is published play no part, so that a number which is
    rounded twice is rounded alike.
    """

    keyed: Keyed = field(repr=False)
    cells: Cells = field(repr=False)
    topic: str
    where: Mapping[str, Iterable[str]]
    lasting: frozenset[str] = frozenset()
    """Dimensions that play no part: their cells share a word."""
    _asked: int = 0

    def words(self, n: int, /) -> NDArray[np.uint64]:
        """The next word of every cell."""
        if n != len(self.cells):
            raise ValueError("every cell has one word at a time")
        self._asked += 1
        return self.keyed.words(self._names(), purpose=f"{self.topic} {self._asked}")

    def _names(self) -> NDArray[np.uint64]:
        """The cells' names: attributes in the order of their own names, each with its code, one after the other."""
        known = {dimension.name: dimension.codes for dimension in self.cells.dimensions}
        filtered = {name: tuple(sorted(codes)) for name, codes in self.where.items() if name not in known}
        names = np.zeros(len(self.cells), dtype=np.uint64)
        for name in sorted(known.keys() | filtered.keys()):
            if name in self.lasting:
                continue
            if name in known:
                codes = hashes([f"{name}={code}" for code in known[name]])[self.cells.codes(name)]
            else:
                codes = np.broadcast_to(hashes([f"{name}={'|'.join(filtered[name])}"]), names.shape)
            names = self.keyed.words_of_pairs(names, codes, purpose="cell")
        return names
