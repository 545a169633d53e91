"""Tables of the confidential report."""

from collections.abc import Iterable, Sequence
from html import escape


def table(caption: str, headings: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column names the rows."""
    head = "".join(f"<th scope='col'>{escape(heading)}</th>" for heading in headings)
    body = "".join(
        f"<tr><th scope='row'>{escape(row[0])}</th>{''.join(f'<td>{escape(figure)}</td>' for figure in row[1:])}</tr>"
        for row in rows
    )
    return f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{body}</table>"
