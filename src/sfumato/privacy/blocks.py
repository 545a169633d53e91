"""Which establishments a charge is about, by public codes, and what charges come to where most of them meet.

An establishment has one code of every public attribute, the same in all neighbours, so it is in one block of codes. It
loses the sum of the charges about its block, and nobody loses more than the block that most was spent on.
docs/ledger.md proves it, and says which charges count as about a block.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from heapq import heappop, heappush
from itertools import combinations, count
from math import gcd, lcm
from typing import Any

import numpy as np

from sfumato.arrays import Flags, Floats
from sfumato.privacy.guarantee import rounded_up

MOST_CODES = 1_000
"""A filter that names more codes is written as none, which is safe: entries of the ledger stay short."""
MOST_WORK = 200_000_000
"""How often the search may look at a charge, before it gives what bounds the sum instead: within a second."""
MOST_BITS = 4_000
"""The longest common denominator of charges; where theirs is longer, they are rounded up to multiples of 2⁻⁴⁰⁰⁰."""
_BITS = 52
"""Sums of whole numbers of so many bits are floating-point numbers without an error."""
_LONG = 100
"""How many looks at a charge it takes to add one up that is longer than that."""
_NAMED = 5
"""So many codes of an attribute are named in a message."""


@dataclass(frozen=True, kw_only=True)
class Filter:
    """The codes that are kept of one public attribute."""

    attribute: str
    of: str
    """A digest of what gives establishments their codes: filters of different ones tell nothing of each other."""
    codes: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Block:
    """The establishments whose public attributes have certain codes; without a filter, all of them."""

    filters: tuple[Filter, ...] = ()

    @classmethod
    def of(cls, where: Mapping[str, Iterable[str]], definitions: Mapping[str, str]) -> "Block":
        """The block of some codes of attributes; every attribute has a text that defines it.

        >>> Block.of({"ownership": ["federal", "state"]}, {"ownership": "column own"}).words
        'ownership: federal, state'
        """
        filters = [
            Filter(attribute=name, of=sha256(definitions[name].encode()).hexdigest(), codes=frozenset(codes))
            for name, codes in sorted(where.items())
        ]
        return cls(filters=tuple(one for one in filters if 0 < len(one.codes) <= MOST_CODES))

    def within(self, registers: Mapping[str, str]) -> "Block":
        """The same where registers, by attribute, say which establishment has which code."""
        return Block(
            filters=tuple(
                replace(one, of=sha256(f"{one.of} {registers[one.attribute]}".encode()).hexdigest())
                for one in self.filters
            )
        )

    def is_disjoint_from(self, other: "Block") -> bool:
        """Whether no establishment can be in both.

        >>> private, public = (Block.of({"own": [code]}, {"own": ""}) for code in ("private", "public"))
        >>> private.is_disjoint_from(public), private.is_disjoint_from(EVERYTHING)
        (True, False)
        """
        codes = {one.of: one.codes for one in other.filters}
        return any(one.of in codes and one.codes.isdisjoint(codes[one.of]) for one in self.filters)

    @property
    def words(self) -> str:
        """Its codes, for people."""
        return "; ".join(f"{one.attribute}: {', '.join(sorted(one.codes))}" for one in self.filters)

    @property
    def short(self) -> str:
        """Its codes for people, in few words; an attribute may have others in other data, or by other rules.

        >>> Block.of({"place": "abcdefg"}, {"place": ""}).short
        'place a, b, c, d, e or 2 more'
        """
        listed: list[str] = []
        for place, one in enumerate(self.filters):
            codes = sorted(one.codes)
            named = codes[:_NAMED] if len(codes) > _NAMED + 1 else codes[:-1]
            last = codes[-1] if len(codes) <= _NAMED + 1 else f"{len(codes) - _NAMED:,} more"
            again = any(other.attribute == one.attribute for other in self.filters[:place])
            which = f"{one.attribute} {' or '.join(filter(None, [', '.join(named), last]))}"
            listed.append(f"{which} in other data or by other rules" if again else which)
        return " and ".join(listed)

    def facts(self) -> dict[str, list[str]]:
        """Its codes, for machines."""
        return {one.attribute: sorted(one.codes) for one in self.filters}

    def described(self) -> dict[str, Any]:
        """All of it, as the ledger writes it."""
        return {one.attribute: {"of": one.of, "codes": sorted(one.codes)} for one in self.filters}

    @classmethod
    def read(cls, described: Mapping[str, Any]) -> "Block":
        """The block that was described; ValueError when it is none."""
        try:
            found = [
                Filter(attribute=str(name), of=str(told["of"]), codes=frozenset(map(str, told["codes"])))
                for name, told in sorted(described.items())
            ]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no codes of public attributes: {described!r}") from error
        if not all(one.codes for one in found):
            raise ValueError(f"an attribute without any code: {described!r}")
        return cls(filters=tuple(found))


EVERYTHING = Block()
"""All establishments: what every charge is about that says nothing else, and all of earlier versions."""


# A block in the note of an entry of the ledger: earlier versions read it as a note, and count the charge as about
# everything.

_ABOUT = "about "


def noted(block: Block, note: str) -> str:
    """A note with a block before it.

    >>> read_noted(noted(Block.of({"own": ["a"]}, {"own": ""}), "of a package"))[1]
    'of a package'
    """
    if block == EVERYTHING:
        return note
    return f"{_ABOUT}{json.dumps(block.described(), sort_keys=True, separators=(',', ':'))}{' ' if note else ''}{note}"


def read_noted(text: str) -> tuple[Block, str]:
    """The block of a note, and the rest of it; ValueError when what stands there is no block."""
    if not text.startswith(_ABOUT):
        return EVERYTHING, text
    described, end = json.JSONDecoder().raw_decode(text, len(_ABOUT))
    return Block.read(described), text[end:].removeprefix(" ")


# Where most was spent: the heaviest set of charges that have a block in common.


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What the block with the most charges comes to."""

    amount: Fraction
    block: Block | None = EVERYTHING
    """The codes that most was spent on; None where that is only bounded."""

    @property
    def exact(self) -> bool:
        """Whether some block comes to this; otherwise none comes to more, and finding the most would take too long."""
        return self.block is not None


def most_spent(charges: Iterable[tuple[Block, Fraction]]) -> Spent:
    """The largest sum of charges that are about one block, over all blocks of public codes.

    >>> own = lambda *codes: Block.of({"own": codes}, {"own": ""})
    >>> found = most_spent([(own("a", "b"), Fraction(2)), (own("c"), Fraction(1)), (EVERYTHING, Fraction(1))])
    >>> found.amount, found.block.words
    (Fraction(3, 1), 'own: a, b')
    """
    boxes: dict[Block, Fraction] = {}
    for block, amount in charges:
        if amount:
            boxes[block] = boxes.get(block, Fraction(0)) + amount
    everywhere = boxes.pop(EVERYTHING, Fraction(0))
    if len(boxes) < 2:
        [(block, amount)] = boxes.items() or [(EVERYTHING, Fraction(0))]
        return Spent(amount=everywhere + amount, block=block)
    unit = _unit(boxes.values())
    amounts = {block: -(-amount.numerator * unit // amount.denominator) for block, amount in boxes.items()}
    found = [_Search(part, [amounts[block] for block in part]).result() for part in _parts(list(boxes))]
    most = Fraction(sum(amount for amount, _ in found), unit)
    if any(unit % amount.denominator for amount in boxes.values()):
        return Spent(amount=everywhere + most, block=None)
    heaviest = [blocks for _, blocks in found if blocks is not None]
    return Spent(amount=everywhere + most, block=_common(heaviest) if len(heaviest) == len(found) else None)


def _unit(amounts: Iterable[Fraction]) -> int:
    """The common denominator of some amounts, or the largest there may be."""
    found = 1
    for amount in amounts:
        found = lcm(found, amount.denominator)
        if found.bit_length() > MOST_BITS:
            return 1 << MOST_BITS
    return found


def _common(parts: Iterable[Sequence[Block]]) -> Block:
    """The establishments that are in all of some blocks, which have some in common."""
    found: dict[str, Filter] = {}
    for one in (one for blocks in parts for block in blocks for one in block.filters):
        codes = one.codes & found[one.of].codes if one.of in found else one.codes
        found[one.of] = replace(one, codes=codes)
    return Block(filters=tuple(sorted(found.values(), key=lambda one: (one.attribute, one.of))))


def _parts(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Blocks without an attribute in common, such as those of two versions of the data, are searched by themselves."""
    parts: list[tuple[set[str], list[Block]]] = []
    for block in blocks:
        names, members = {one.of for one in block.filters}, [block]
        apart = []
        for part in parts:
            if part[0].isdisjoint(names):
                apart.append(part)
            else:
                names |= part[0]
                members = [*part[1], *members]
        parts = [*apart, (names, members)]
    return (members for _, members in parts)


class _Search:
    """Best first: sets of charges that fit to the codes chosen so far, the heaviest first.

    Choosing a code of an attribute leaves the charges that keep it and those without a filter of it, so that no choice
    makes a set heavier: the first set that comes up with nothing left to choose is the heaviest of all, and at every
    moment the first set bounds it.

    Weights are the amounts, or those rounded up where they are too long for floating-point numbers. Rounded ones still
    bound every set, and sets that come up with nothing left are added up exactly, until no other can be heavier.
    """

    def __init__(self, blocks: Sequence[Block], amounts: Sequence[int]) -> None:
        self._blocks, self._gcd = blocks, gcd(*amounts)  # equal amounts, however long, are 1 each
        self._amounts = [amount // self._gcd for amount in amounts]
        self._cut = max((sum(self._amounts) + 2 * len(amounts)).bit_length() - _BITS, 0)
        """How many bits weights lack."""
        self._weights: Floats = np.array([-(-amount >> self._cut) for amount in self._amounts], dtype=np.float64)
        codes: dict[str, dict[str, list[int]]] = {}
        filtering: dict[str, list[int]] = {}
        for place, block in enumerate(blocks):
            for one in block.filters:
                filtering.setdefault(one.of, []).append(place)
                keeping = codes.setdefault(one.of, {})
                for code in sorted(one.codes):  # in one order, so that a mere bound is the same in every process
                    keeping.setdefault(code, []).append(place)
        self._filtering = {of: self._flags([places])[0] for of, places in filtering.items()}
        """By attribute, the charges with a filter of it."""
        self._keeping = {
            of: self._flags(dict.fromkeys(map(tuple, keeping.values()))) | ~self._filtering[of]
            for of, keeping in codes.items()
        }
        """By attribute and code, the charges that are left; codes that the same charges keep are one."""
        self._factors = {of: keeping.astype(np.float64) for of, keeping in self._keeping.items()}

    def _flags(self, sets: Iterable[Sequence[int]]) -> Flags:
        listed = list(sets)
        found = np.zeros((len(listed), len(self._blocks)), dtype=np.bool_)
        for flags, places in zip(found, listed, strict=True):
            flags[list(places)] = True
        return found

    def result(self) -> tuple[int, list[Block] | None]:
        """The amount of the heaviest set, and the blocks in it; None where the amount is only a bound."""
        work, order, seen = 0, count(), set[tuple[bytes, tuple[str, ...]]]()
        everything = np.ones(len(self._blocks), dtype=np.bool_)
        waiting = [(-int(self._weights.sum()), next(order), everything, everything, tuple(sorted(self._filtering)))]
        best, heaviest = -1, everything
        while waiting:
            weight, _, before, choice, open_ = heappop(waiting)
            bound = -weight << self._cut
            if bound <= best:
                break
            charges = before & choice
            left = tuple(of for of in open_ if (charges & self._filtering[of]).any())
            if not left:
                amount = sum(self._amounts[place] for place in np.flatnonzero(charges)) if self._cut else bound
                work += _LONG * len(self._blocks)
                if amount > best:
                    best, heaviest = amount, charges
                continue
            if work > MOST_WORK:
                return min(bound, sum(self._amounts)) * self._gcd, None
            if (known := (charges.tobytes(), left)) in seen:
                continue
            seen.add(known)
            weights = self._weights * charges
            choices = {of: self._factors[of] @ weights for of in left}
            work += sum(self._factors[of].size for of in left)
            # The attribute whose heaviest choice is lightest says most about the rest.
            chosen = min(left, key=lambda of: (choices[of].max(), len(choices[of])))
            rest = tuple(of for of in left if of != chosen)
            # With nothing to choose after it, only the heaviest choice can be the heaviest of all.
            likely = choices[chosen].max() - (len(self._blocks) if self._cut else 0)
            worth = range(len(choices[chosen])) if rest else np.flatnonzero(choices[chosen] >= likely)
            for place in worth if rest or self._cut else worth[:1]:
                choice = self._keeping[chosen][place]
                heappush(waiting, (-int(choices[chosen][place]), next(order), charges, choice, rest))
        return best * self._gcd, [block for block, is_in in zip(self._blocks, heaviest, strict=True) if is_in]


# Which tables are charged once.


@dataclass(frozen=True, kw_only=True)
class ChargedOnce:
    """Tables of which no establishment is in all."""

    names: tuple[str, ...]
    attributes: tuple[str, ...]
    """What tells their establishments apart."""
    disjoint: bool
    """Whether no establishment is in two of them."""
    epsilon: Fraction
    """What they cost together."""
    added_epsilon: Fraction
    """What they would cost if every establishment could be in all of them."""

    def facts(self) -> dict[str, Any]:
        """The same, for machines; numbers are rounded up where they have no short decimals."""
        amounts = {"epsilon": rounded_up(self.epsilon), "added_epsilon": rounded_up(self.added_epsilon)}
        return {"tables": [*self.names], "by": [*self.attributes], "disjoint": self.disjoint, **amounts}


def charged_once(charged: Mapping[str, tuple[Block, Fraction]]) -> tuple[ChargedOnce, ...]:
    """The groups of tables that cost less together than by themselves, each table by its name."""
    blocks = {name: block for name, (block, _) in charged.items()}
    pairs = {frozenset(pair) for pair in combinations(blocks, 2) if blocks[pair[0]].is_disjoint_from(blocks[pair[1]])}
    groups: list[frozenset[str]] = []
    for pair in pairs:
        touched = [group for group in groups if not group.isdisjoint(pair)]
        groups = [group for group in groups if group.isdisjoint(pair)] + [pair.union(*touched)]
    found = []
    for group in groups:
        names = tuple(name for name in blocks if name in group)
        both = [(one, blocks[b]) for a, b in combinations(names, 2) for one in blocks[a].filters]
        told = {one.attribute for one, other in both if Block(filters=(one,)).is_disjoint_from(other)}
        found.append(
            ChargedOnce(
                names=names,
                attributes=tuple(sorted(told)),
                disjoint=all(frozenset(pair) in pairs for pair in combinations(names, 2)),
                epsilon=most_spent(charged[name] for name in names).amount,
                added_epsilon=sum((charged[name][1] for name in names), Fraction(0)),
            )
        )
    return tuple(sorted(found, key=lambda one: list(blocks).index(one.names[0])))
