"""How a table is cited: in words, and for programs that keep references."""

import re

from sfumato.serve.core.model import ServedTable


def citations(table: ServedTable, link: str, *, source: str) -> tuple[tuple[str, str], ...]:
    """How to cite a table: in words, and for programs that keep references."""
    year, day, office = table.updated.strftime("%Y"), table.updated.strftime("%Y-%m-%d"), source or table.release
    title, version = f"{table.title}, {table.period}", table.digest[:16]
    words = f"{office} ({year}): {title}. {table.release}, version {version} of {day}. {link}"
    # In braces of its own a name is one, and a title keeps its capitals.
    written = {"author": f"{{{_in_latex(office)}}}", "title": f"{{{_in_latex(title)}}}"}
    fields = {**written, "year": year, "version": version, "url": re.sub(r"[\\{}]", "", link)}
    entry = ",\n".join(f"  {name} = {{{text}}}" for name, text in fields.items())
    key = re.sub(r"[^\w-]", "-", table.id)
    return (("In words", words), ("BibTeX", f"@misc{{{key},\n{entry}\n}}"))


def _in_latex(text: str) -> str:
    """A text without what ends a field of BibTeX, and with the signs escaped that LaTeX would not print."""
    return re.sub(r"[&%$#_]", r"\\\g<0>", re.sub(r"[\\{}~^]", "", text))
