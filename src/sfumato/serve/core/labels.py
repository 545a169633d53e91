"""Names and labels of one's own, as everybody is shown them: none changes how the text after it is read."""

from collections import Counter
from collections.abc import Iterator, Sequence

_OPENS = {**dict.fromkeys("\u202a\u202b\u202d\u202e", "\u202c"), **dict.fromkeys("\u2066\u2067\u2068", "\u2069")}
"""Signs that turn the direction of writing, each with the one that ends it."""


def contained(text: str) -> str:
    """A text that ends every turn of the direction of writing: figures after it are not written backwards.

    >>> contained("Berlin"), contained("\\u202eBerlin") == "\\u202eBerlin\\u202c"
    ('Berlin', True)
    """
    if not any(sign in text for sign in _OPENS):
        return text
    open_signs: list[str] = []
    for sign in text:
        if sign in _OPENS:
            open_signs.append(_OPENS[sign])
        elif open_signs and sign == open_signs[-1]:
            open_signs.pop()
    return text + "".join(reversed(open_signs))


def told_apart(codes: Sequence[str], labels: Sequence[str]) -> tuple[str, ...]:
    """The labels of codes, each `contained`; those that several codes have are followed by the code.

    >>> told_apart(["1", "2", "3"], ["Other", "Trade", "Other"])
    ('Other (1)', 'Trade', 'Other (3)')
    """
    ended = [contained(label) for label in labels]
    many = Counter(ended)
    taken = set(ended)
    found = []
    for code, label in zip(codes, ended, strict=True):
        own = label
        while label and many[label] > 1 and own in taken:
            own = f"{own} ({contained(code)})"
        taken.add(own)
        found.append(own)
    return tuple(found)


def free_name(name: str, taken: Sequence[str]) -> str:
    """The name, or the first variation of it that nothing else has."""

    def variations() -> Iterator[str]:
        yield name
        yield from (f"{name}_{number}" for number in range(2, len(taken) + 3))

    lower = {other.lower() for other in taken}
    return next(found for found in variations() if found.lower() not in lower)
