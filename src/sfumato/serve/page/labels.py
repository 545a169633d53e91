"""Labels that fit into a width and still tell apart what they name: what all have in common is shortened first."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import takewhile
from textwrap import wrap

from sfumato.serve.page.drawing import letters

_CUT = "…"
_SHORTEST = 4
"""Of a text that is cut, no fewer letters are left."""


def distinct(labels: Sequence[Sequence[str]], width: float, lines: int = 1) -> list[list[str]]:
    """The lines of every label, given in parts; no two labels look the same.

    Parts are shortened as far as needed, the longest first, by what tells them apart from the same part of others.

    >>> distinct([("Growing of cereals",), ("Growing of grapes",)], 80)
    [['…cereals'], ['…grapes']]
    """
    most = letters(width)
    labels = [[" ".join(text.split()) for text in parts] for parts in labels]  # as drawings show them
    every = [[*dict.fromkeys(filter(None, texts))] for texts in zip(*labels, strict=True)]

    def written(longest: int) -> list[list[str]]:
        short = [_shortened(texts, longest) for texts in every]
        return [
            wrap(", ".join(short[at].get(text, text) for at, text in enumerate(parts) if text), most)
            for parts in labels
        ]

    def fits(longest: int) -> bool:
        return all(len(found) <= lines for found in written(longest))

    low, high = _SHORTEST, max((len(text) for texts in every for text in texts), default=_SHORTEST)
    if not fits(high):
        while low < high - 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        high = low
    return _numbered([_ended(found, most, lines) for found in written(high)], most)


def in_common(labels: Sequence[Sequence[str]]) -> list[bool]:
    """Which parts are the same in all of several labels."""
    several = len(labels) > 1
    return [several and len(set(texts)) == 1 for texts in zip(*labels, strict=True)]


def _shortened(texts: Sequence[str], longest: int) -> dict[str, str]:
    """The texts cut to a length in the first way that keeps them apart; those that are short enough stay."""
    long = [text for text in texts if len(text) > longest]
    if not long:
        return {}
    words = zip(*(text.split(" ") for text in texts), strict=False)
    begin = sum(len(some[0]) + 1 for some in takewhile(lambda some: len(set(some)) == 1, words))
    ways: list[Callable[[str], str]] = [
        lambda text: _head(text, longest),
        lambda text: _head(_CUT + text[begin:], longest),
        lambda text: _tail(text, longest),
        lambda text: _middle(text, longest),
    ]
    if 2 * begin >= longest:  # a beginning that is mostly the same says little
        ways[:2] = [ways[1], ways[0]]
    kept = {text for text in texts if len(text) <= longest}
    for way in ways:
        found = {text: way(text) for text in long}
        if len({*found.values()} | kept) == len(texts):
            return found
    return found


def _head(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip(' ,')}{_CUT}"


def _tail(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{_CUT}{text[1 - longest :].lstrip(' ,')}"


def _middle(text: str, longest: int) -> str:
    end = (longest - 1) // 2
    return text if len(text) <= longest else f"{text[: longest - 1 - end].rstrip()}{_CUT}{text[-end:].lstrip()}"


def _ended(found: list[str], most: int, lines: int) -> list[str]:
    """At most so many lines, the last of them cut where there were more."""
    return found if len(found) <= lines else [*found[: lines - 1], _head(" ".join(found[lines - 1 :]), most)]


def _numbered(labels: list[list[str]], most: int) -> list[list[str]]:
    """The labels, with a number at the end of those that look like another one."""
    many = Counter(map(" ".join, labels))
    taken, numbers = set(many), Counter[str]()
    found = []
    for label in labels:
        text, looks = " ".join(label), label
        while many[text] > 1 and " ".join(looks) in taken:
            numbers[text] += 1
            end = f" ({numbers[text]})"
            looks = [*label[:-1], _head(label[-1], max(most - len(end), 2)) + end] if label else [end.strip()]
        taken.add(" ".join(looks))
        found.append(looks)
    return found
