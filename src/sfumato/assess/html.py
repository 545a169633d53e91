"""Tables of the confidential report."""

from collections.abc import Iterable, Sequence
from html import escape
from math import isnan

from sfumato.assess.attacks import AttackResult


def table(caption: str, headings: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column names the rows."""
    head = "".join(f"<th scope='col'>{escape(heading)}</th>" for heading in headings)
    body = "".join(
        f"<tr><th scope='row'>{escape(row[0])}</th>{''.join(f'<td>{escape(figure)}</td>' for figure in row[1:])}</tr>"
        for row in rows
    )
    return f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{body}</table>"


def attacks_table(
    caption: str, attacks: Sequence[AttackResult], *, guess: str = "right by guessing without the release"
) -> str:
    """What attacks disclose, beside what `guess` says; nothing where there were none."""
    rows = (
        (found.attack, f"{found.targets:,}", _rate(found.success_rate), _rate(found.baseline_rate)) for found in attacks
    )
    headings = ("attack", "targets", "disclosed", guess)
    return table(caption, headings, rows) if attacks else ""


def _rate(rate: float) -> str:
    return "no target" if isnan(rate) else f"{rate:.1%}"
