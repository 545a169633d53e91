"""Search for tables and codes by words in titles, labels and codes, by synonyms, and by words that are nearly right."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from unicodedata import combining, normalize

from sfumato.serve.core.model import ServedDimension, ServedTable

_WORD = re.compile(r"\w+")
_MOST_CODES = 20_000
"""Codes of a variable that tables are found by; further ones are found in the list of the variable."""
_SHORTEST = 4
"""A shorter word is never taken for another one."""


def plain(text: str) -> str:
    """A text without what people leave out when they search: capitals and accents.

    >>> plain("Österreich, Île")
    'osterreich, ile'
    """
    return "".join(sign for sign in normalize("NFKD", text.casefold()) if not combining(sign))


def words_in(text: str) -> list[str]:
    """The words of a text."""
    return _WORD.findall(plain(text))


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """What was found: places in the order of how well they fit, where each was found, and what was read instead."""

    places: tuple[int, ...]
    where: Mapping[int, str]
    """For places that only a code has led to, what that is."""
    instead: str = ""
    """The words that were taken for those that nothing has."""


class WordIndex:
    """Which places have which words: in their names, or in something that belongs to them."""

    def __init__(self) -> None:
        self._named: dict[str, set[int]] = defaultdict(set)
        self._owned: dict[str, dict[int, str]] = defaultdict(dict)

    def add(self, place: int, *names: str) -> None:
        """The names of a place."""
        for word in {word for name in names for word in words_in(name)}:
            self._named[word].add(place)

    def add_owned(self, place: int, text: str, *names: str) -> None:
        """Something that belongs to a place, and what is said where it led there."""
        for word in {word for name in names for word in words_in(name)}:
            self._owned[word].setdefault(place, text)

    @cached_property
    def _words(self) -> list[str]:
        return [*{**self._named, **self._owned}]

    @cached_property
    def _shortened(self) -> Mapping[str, list[str]]:
        """The words by themselves without one letter: two that share one differ by a letter or by an exchange."""
        found = defaultdict(list)
        for word in self._words:
            for short in _without_one(word):
                found[short].append(word)
        return found

    def near(self, word: str) -> list[str]:
        """Known words that differ by a letter or two, the nearest in length first."""
        if len(word) < _SHORTEST:
            return []
        found = {other for short in _without_one(word) for other in self._shortened.get(short, ())}
        return sorted(
            (other for other in found if len(other) >= _SHORTEST),
            key=lambda other: (abs(len(other) - len(word)), other),
        )

    def find(self, text: str, synonyms: Sequence[Sequence[str]] = ()) -> Found:
        """Places that have every word of a text, or a synonym of it; for a word that nothing has, a near one."""
        asked = words_in(text)
        if synonyms and len(asked) > 1 and (plain_found := self._find(asked, (), near=False)).places:
            return plain_found  # several words say what is meant
        return self._find(asked, synonyms, near=True)

    def _find(self, asked: Sequence[str], synonyms: Sequence[Sequence[str]], *, near: bool) -> Found:
        instead: list[str] = []
        groups = [[words_in(one)[0] for one in some] for some in synonyms]
        scores: dict[int, int] | None = None
        where: dict[int, str] = {}
        for word in asked:
            # Within a name anything counts; codes are many, so that only how their words begin does.
            known = [
                other for other in self._words if other.startswith(word) or (word in other and other in self._named)
            ]
            same = {
                other for some in groups if word in some for other in some if other != word and other in self._words
            }
            if not known and not same:
                known = self.near(word)[:3] if near else []
                instead += known[:1]
            else:
                instead.append(word)
            of_word = self._of(word, known, same, where)
            scores = of_word if scores is None else {at: scores[at] + of_word[at] for at in scores if at in of_word}
        if scores is None:
            return Found(places=(), where={})
        places = tuple(sorted(scores, key=lambda at: (-scores[at], at)))
        changed = instead != [*asked] and bool(places)
        return Found(places=places, where=where, instead=" ".join(instead) if changed else "")

    def _of(self, asked: str, known: Sequence[str], same: Iterable[str], where: dict[int, str]) -> dict[int, int]:
        """How well places fit a word: best by their names, then by synonyms in these, then by what belongs to them."""
        found: dict[int, int] = {}
        for word in known:
            found.update(dict.fromkeys(self._named.get(word, ()), 4))
        for word in same:
            for at in self._named.get(word, ()):
                found.setdefault(at, 2)
        for word in (word for word in known if word.startswith(asked) or asked not in word):
            for at, text in self._owned.get(word, {}).items():
                if at not in found:
                    found[at] = 1
                    where.setdefault(at, text)
        return found


def _without_one(word: str) -> set[str]:
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def index_of_tables(tables: Iterable[ServedTable]) -> WordIndex:
    """The words of tables: titles, variables and figures, and of variables the codes with their labels."""
    found = WordIndex()
    for at, table in enumerate(tables):
        found.add(at, table.id, table.title, table.release, table.population, table.period)
        for axis in table.axes:
            found.add(at, axis.name, axis.label)
        found.add(at, *table.contents.labels)
        for dimension in table.dimensions:
            every = (dimension.labels, *dimension.translations.values())
            for code, *labels in zip(dimension.codes[:_MOST_CODES], *every, strict=False):
                found.add_owned(at, f"{dimension.label}: {labels[0]}", code, *labels)
    return found


def labels_above(dimension: ServedDimension) -> dict[str, str]:
    """The label of the code that each code lies in, in the order of the nearest level above."""
    groups = dimension.above.groups if dimension.above is not None else {}
    return {code: label for label, members in groups.values() for code in members}


def matching(dimension: ServedDimension, text: str) -> tuple[list[int], bool]:
    """The places of codes that have every word in their code or label, or in that of what they lie in.

    Where none has, those that nearly have, and that this is so.
    """
    wanted, above = plain(text).split(), labels_above(dimension)
    texts = [
        plain(f"{code} {label} {above.get(code, '')}")
        for code, label in zip(dimension.codes, dimension.labels, strict=True)
    ]
    found = [place for place, own in enumerate(texts) if all(word in own for word in wanted)]
    if found or not wanted:
        return found, False
    index = WordIndex()
    for place, own in enumerate(texts):
        index.add(place, own)
    near = index.find(text)
    return sorted(near.places), bool(near.places)
