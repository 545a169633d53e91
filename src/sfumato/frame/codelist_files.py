"""Files of codes as offices have them: CSV in any form, workbooks, SDMX; how they are read is guessed and told."""

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from pydantic import Field

from sfumato.description import Described
from sfumato.errors import ReleaseError
from sfumato.frame.classifications import Listed, levels_of
from sfumato.frame.codelist_sdmx import is_json, is_xml, sdmx_json, sdmx_xml
from sfumato.frame.sources import format_of
from sfumato.frame.texts import bytes_of, guess_delimiter, guess_encoding
from sfumato.frame.workbooks import read_sheet
from sfumato.paths import described, meant

MOST_BYTES = 100_000_000
_LISTS = (".csv", ".tsv", ".txt", ".xlsx", ".json", ".xml")
"""Endings of files that may be lists of codes."""
_HEADING_WITHIN = 30
"""Rows among which the heading is looked for: titles and remarks may stand before it."""
_CODE: tuple[str, ...] = (
    "code",
    "codes",
    "kod",
    "kode",
    "koodi",
    "código",
    "codigo",
    "codice",
    "schlüssel",
    "schluessel",
    "notation",
    "id",
)
_LABEL: tuple[str, ...] = (
    *("label", "labels", "name", "title", "description", "heading", "beschreibung", "bezeichnung", "titel", "text"),
    *("titre", "libellé", "libelle", "intitulé", "intitule", "denominazione", "descrizione", "descripción"),
    *("descripcion", "título", "titulo", "nombre", "nazwa", "opis", "omschrijving", "navn", "namn", "nimi", "nimike"),
)
_PARENT: tuple[str, ...] = ("parent", "parent code", "parent id", "broader", "übergeordnet", "oberkategorie", "padre")
_LEVEL: tuple[str, ...] = (
    "level",
    "niveau",
    "ebene",
    "stufe",
    "nivel",
    "livello",
    "poziom",
    "nivå",
    "hierarchy level",
    "level name",
)
_NAMED = 2
"""Words of the heading of labels that names their language."""
_FOOTNOTE = re.compile(r"(\*|†|‡|\d+[).]? |notes?\b|source|footnote|t\s*=|legend|©|\()", re.IGNORECASE)


class Columns(Described):
    """The columns of a table of codes, where their names do not tell what they are."""

    code: str | None = Field(None, description="column with the codes; one such as code, Kod or NAICS Code is found")
    label: str | None = Field(None, description="column with the words; one such as label or Beschreibung is found")
    parent: str | None = Field(None, description="column with the code above each; one such as parent is found")
    level: str | None = Field(None, description="column with the level of each code; one such as level is found")


class CodesFile(Described):
    """A public file of codes and how it is to be read; what is not said is guessed, and `check` tells the guess."""

    file: Path = Field(
        description="CSV of any form, Excel, or SDMX code lists (SDMX-ML 2.1 or 3.0, SDMX-JSON); never fetched from "
        "the network"
    )
    id: str | None = Field(None, description="which code list of an SDMX file, where it has several")
    columns: Columns = Field(
        Columns.model_validate({}), description="columns of a table of codes, where their names do not tell them"
    )
    language: str | None = Field(None, description="language of the labels, such as de, where a file has several")
    sheet: str | None = Field(None, description="sheet of an Excel file; the first when not given")
    delimiter: str | None = Field(None, min_length=1, max_length=1, description="what stands between columns of a CSV")
    encoding: str | None = Field(None, description="how a CSV file writes letters, such as latin-1")
    trim: bool = Field(False, description="take blanks around codes away; they belong to the codes when not given")
    width: int | None = Field(
        None, ge=2, description="codes that lost their zeros, as a workbook makes 1 of 01, get so many digits back"
    )


def read_listed(path: Path, options: CodesFile) -> Listed:
    """All codes of a file, with their parents and levels where it tells them."""
    named = f"codelist {path}"
    if format_of(path.name) == "excel":
        rows, numbers = _workbook(path, named, options)
        return _Table(named, rows, options, ("Excel",), numbers).listed().complete()
    content = _content(path, named)
    if is_xml(content[:1000]):
        return sdmx_xml(content, named, options.id, options.language).complete()
    if is_json(content[:1000]):
        return sdmx_json(content, named, options.id, options.language).complete()
    text, signs = _decoded(content, named, options)
    lines = text.splitlines(keepends=True)
    delimiter = options.delimiter or guess_delimiter(_from_heading(lines), '"', lambda name: _is_known(name, options))
    if delimiter != "," and options.delimiter is None:
        signs = (*signs, f"delimiter {'tab' if delimiter == chr(9) else delimiter}")
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise ReleaseError(
            named, expected="a table that can be read", found=str(error), do="mend the quotes in the file"
        ) from error
    return _Table(named, rows, options, signs, frozenset()).listed().complete()


def _content(path: Path, named: str) -> bytes:
    try:
        with bytes_of(path) as opened:
            content = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise ReleaseError(
            named,
            expected="a file of codes",
            found=described(path),
            do=meant(path, lambda one: one.suffix in _LISTS, "check the path")
            + "; paths are relative to the release file",
        ) from error
    if len(content) > MOST_BYTES:
        raise ReleaseError(
            named,
            expected=f"a file of at most {MOST_BYTES // 1_000_000} megabytes",
            found="a larger one",
            do="keep the codes that are needed in a file of their own",
        )
    return content


def _decoded(content: bytes, named: str, options: CodesFile) -> tuple[str, tuple[str, ...]]:
    encoding = options.encoding or guess_encoding(content)
    try:
        text = content.decode(codecs.lookup(encoding).name)
    except (LookupError, UnicodeDecodeError) as error:
        raise ReleaseError(
            named,
            expected=f"a CSV file in {encoding.upper()}",
            found=str(error),
            do='write how the file was saved: codelist = { file = "…", encoding = "latin-1" }',
        ) from error
    guessed = options.encoding is None and encoding != "utf-8"
    return text.removeprefix("\ufeff"), (f"encoding {encoding}",) if guessed else ()


def _from_heading(lines: Sequence[str]) -> Sequence[str]:
    """Lines from the first that is likely to be a heading: a title above it has no delimiter, whichever it is."""
    for place, line in enumerate(lines[:_HEADING_WITHIN]):
        if any(_role_of(name) == "code" for name in re.split(r"[,;\t|]", line.replace('"', ""))):
            return lines[place:]
    return lines


def _workbook(path: Path, named: str, options: CodesFile) -> tuple[list[list[str]], frozenset[tuple[int, int]]]:
    """The rows of a sheet as texts, and which cells of it are numbers."""
    rows = read_sheet(path, named, options.sheet, ReleaseError).rows
    numbers = {
        (down, across)
        for down, row in enumerate(rows)
        for across, value in enumerate(row)
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return [[_text(value) for value in row] for row in rows], frozenset(numbers)


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


# Tables: CSV and workbooks.


def _plain(name: str) -> str:
    return re.sub(r"[\s_.-]+", " ", name).strip().casefold()


def _role_of(name: str) -> str | None:
    """What a column is for, by its name."""
    plain = _plain(name)
    for role, words in (("parent", _PARENT), ("level", _LEVEL), ("code", _CODE), ("label", _LABEL)):
        if plain in words:
            return role
    if "parent" in plain.split():
        return "parent"
    for role, words in (("code", _CODE[:-1]), ("label", _LABEL)):  # 2022 NAICS US Code, Title EN, name_de, KOD PKD
        inside = plain.replace("(", " ").replace(")", " ").split()
        if any(word in inside[:1] + inside[-2:] for word in words):
            return role
    return None


def _languages(heading: Sequence[str]) -> Iterator[tuple[str, int]]:
    """The columns of labels that name their language: label_de, Title EN."""
    found: dict[str, int] = {}
    for place, name in enumerate(heading):
        words = _plain(name).replace("(", " ").replace(")", " ").split()
        if len(words) == _NAMED and words[0] in _LABEL and re.fullmatch("[a-z]{2}", words[1]):
            found.setdefault(words[1], place)
    yield from found.items()


def _is_known(name: str, options: CodesFile) -> bool:
    return (
        name in (options.columns.code, options.columns.label, options.columns.parent, options.columns.level)
        or _role_of(name) is not None
    )


@dataclass(frozen=True)
class _Table:
    """The rows of a file of codes, its heading among them."""

    named: str
    rows: Sequence[Sequence[str]]
    options: CodesFile
    signs: tuple[str, ...]
    """How the file was read so far, where that was guessed."""
    numbers: frozenset[tuple[int, int]]
    """The cells that a workbook holds as numbers."""

    def listed(self) -> Listed:
        """The codes with their labels, and what else the columns tell."""
        top = self._heading()
        heading = [name.strip() for name in self.rows[top]]
        code = self._column(heading, "code")
        if code is None:
            self._refuse_heading(heading)
        body = self._body(top, code)
        codes = [self._code(row, code) for _, row in body]
        self._refuse_repeated(codes, [place for place, _ in body], heading[code])
        label, level = self._column(heading, "label"), self._column(heading, "level")
        levels = None if level is None else levels_of([_cell(row, level) for _, row in body])
        labels = ["" if label is None else _cell(row, label) for _, row in body]
        words = self._words(top, heading, code, label, codes)
        if label is not None and "naics" in _plain(heading[label]):
            # The tables of the US Census Bureau mark titles shared by three countries with a raised T.
            labels = [re.sub(r"(?<=[a-z)])T$", "", one) for one in labels]
        return Listed(
            named=self.named,
            codes=codes,
            labels=[label if label.strip() else code for label, code in zip(labels, codes, strict=True)],
            places=[f"row {place + 1}" for place, _ in body],
            parents=self._parents(heading, body, codes),
            levels=None if levels is None else levels[0],
            level_names={} if levels is None else levels[1],
            translations={
                language: [_cell(row, place).strip() for _, row in body] for language, place in _languages(heading)
            },
            reading=", ".join((*self.signs, *words)),
        )

    def _heading(self) -> int:
        """The row of the heading: the first that names a column of codes, or else the first that is not empty."""
        for place, row in enumerate(self.rows[:_HEADING_WITHIN]):
            names = [name.strip() for name in row if name.strip()]
            likely = len(names) > 1 and any(_role_of(name) == "code" for name in names)  # a title stands alone
            if likely or self.options.columns.code in names or any(_plain(name) in _CODE for name in names):
                return place
        filled = next((place for place, row in enumerate(self.rows) if any(cell.strip() for cell in row)), None)
        if filled is None or (filled == len(self.rows) - 1 and self.options.columns.code is None):
            self._refuse_heading([] if filled is None else self.rows[filled])
        return filled

    def _refuse_heading(self, heading: Sequence[str]) -> NoReturn:
        raise ReleaseError(
            self.named,
            expected="a header line with the column 'code' (and 'label'), then one line a code",
            found=f"the columns {', '.join(heading)}" if any(heading) else "no lines",
            do='add the header, or name the columns: codelist = { file = "…", columns = { code = "…", label = "…" } }',
        )

    def _column(self, heading: Sequence[str], role: str) -> int | None:
        said: str | None = getattr(self.options.columns, role)
        if said is not None:
            if said in heading:
                return heading.index(said)
            raise ReleaseError(
                self.named, expected=f"the column '{said}'", found=", ".join(heading), do=f"correct columns.{role}"
            )
        words = {"code": _CODE, "label": _LABEL, "parent": _PARENT, "level": _LEVEL}[role]
        plain = [_plain(name) for name in heading]
        exact = sorted((words.index(name), place) for place, name in enumerate(plain) if name in words)
        like = [place for place, name in enumerate(heading) if _role_of(name) == role]
        if role == "label" and self.options.language is not None:
            return self._in_language(heading, like)
        return exact[0][1] if exact else like[0] if like else None

    def _in_language(self, heading: Sequence[str], like: Sequence[int]) -> int:
        language = str(self.options.language).casefold()
        places: list[int] = [*like, *range(len(heading))]
        for place in places:
            if language in _plain(heading[place]).replace("(", " ").replace(")", " ").split():
                return place
        raise ReleaseError(
            self.named,
            expected=f"a column of labels in '{self.options.language}', such as label_{self.options.language}",
            found=", ".join(heading),
            do="correct `language`, or name the column: columns.label",
        )

    def _body(self, top: int, code: int) -> list[tuple[int, Sequence[str]]]:
        """The rows of codes, each with its place; empty rows and footnotes at the end are none."""
        rows = [(top + 1 + at, row) for at, row in enumerate(self.rows[top + 1 :]) if any(cell.strip() for cell in row)]
        while (
            rows
            and _is_footnote(rows[-1][1])
            and (not _cell(rows[-1][1], code).strip() or len(_filled(rows[0][1])) > 1)
        ):
            rows.pop()
        for place, row in rows:
            if not _cell(row, code).strip():
                raise ReleaseError(
                    f"{self.named}, row {place + 1}, column '{self.rows[top][code].strip()}'",
                    expected="a code in every row",
                    found="none",
                    do="fill it in, or remove the row",
                )
        if not rows:
            self._refuse_heading([])
        return rows

    def _code(self, row: Sequence[str], column: int) -> str:
        code = _cell(row, column)
        code = code.strip() if self.options.trim or self.numbers else code
        return _padded(code, self.options.width)

    def _refuse_repeated(self, codes: Sequence[str], places: Sequence[int], column: str) -> None:
        first: dict[str, int] = {}
        for code, place in zip(codes, places, strict=True):
            if (before := first.setdefault(code, place)) != place:
                held = any(down == place for down, _ in self.numbers)
                raise ReleaseError(
                    f"{self.named}, row {place + 1}, column '{column}'",
                    expected="each code once, none empty",
                    found=f"'{code}', which is in row {before + 1} too (repeated: {code})"
                    + (", where the workbook may hold codes such as 1.10 as the number 1.1" if held else ""),
                    do="store the codes as text" if held else "remove one of the rows",
                )

    def _parents(
        self, heading: Sequence[str], body: Sequence[tuple[int, Sequence[str]]], codes: Sequence[str]
    ) -> list[str | None] | None:
        """The column of parents that are codes of the list; of a guess, only if all are."""
        said = self.options.columns.parent
        like = (
            [self._column(heading, "parent")]
            if said
            else [place for place, name in enumerate(heading) if _role_of(name) == "parent"]
        )
        known = set(codes)
        for column in like:
            if column is None:
                continue
            found = [_padded(_cell(row, column).strip(), self.options.width) or None for _, row in body]
            if said or (any(found) and all(one is None or one in known for one in found)):
                return found
        return None

    def _words(self, top: int, heading: Sequence[str], code: int, label: int | None, codes: Sequence[str]) -> list[str]:
        """What was guessed, in words."""
        words = []
        if top:
            words.append(f"heading in row {top + 1}")
        if heading[code] != "code" and self.options.columns.code is None:
            words.append(f"codes in column '{heading[code]}'")
        if label is not None and heading[label] != "label" and self.options.columns.label is None:
            words.append(f"labels in '{heading[label]}'")
        if (
            self.numbers
            and any(across == code and down > top for down, across in self.numbers)
            and not self.options.width
        ):
            words.append("codes that the workbook holds as numbers, 1 and not 01 (`width` gives zeros back)")
        blanks = sum(one != one.strip() for one in codes)
        if blanks:
            words.append(f"{blanks:,} codes with blanks around them, which belong to the code (`trim` takes them away)")
        return words


def _padded(code: str, width: int | None) -> str:
    """A code of digits with the zeros in front that it lost.

    >>> _padded("1", 2), _padded("C", 2), _padded("1", None)
    ('01', 'C', '1')
    """
    return code.zfill(width) if width and code.isdigit() else code


def _cell(row: Sequence[str], column: int) -> str:
    return row[column] if column < len(row) else ""


def _filled(row: Sequence[str]) -> list[str]:
    return [cell.strip() for cell in row if cell.strip()]


def _is_footnote(row: Sequence[str]) -> bool:
    return len(_filled(row)) == 1 and _FOOTNOTE.match(_filled(row)[0]) is not None
