"""A workbook of Excel (Office Open XML), written as text: numbers and texts by the row, and nothing that could run.

The format is made for programs that change one cell at a time. Served tables are written once, from the first row to
the last, and every part is a few lines of XML: that takes a fraction of the time.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from sfumato.serve.core.errors import RefusedError

MOST_ROWS, MOST_COLUMNS, LONGEST = 1_048_576, 16_384, 32_767
"""What Excel can show: more rows or columns are refused, longer texts are cut."""

# How cells look: each is the place of a format in the list of styles.

PLAIN, TITLE, HEAD, SYMBOL, BOLD, WRAPPED = range(6)
_LOOKS = (
    '<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>',
    '<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/>',
    '<xf numFmtId="0" fontId="2" fillId="0" borderId="0" xfId="0" applyFont="1" applyAlignment="1">'
    '<alignment vertical="top" wrapText="1"/></xf>',
    '<xf numFmtId="0" fontId="3" fillId="0" borderId="0" xfId="0" applyFont="1" applyAlignment="1">'
    '<alignment horizontal="right"/></xf>',
    '<xf numFmtId="0" fontId="2" fillId="0" borderId="0" xfId="0" applyFont="1" applyAlignment="1">'
    '<alignment vertical="top"/></xf>',
    '<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0" applyAlignment="1"><alignment wrapText="1"/></xf>',
)
_FONT = '<name val="Calibri"/><family val="2"/>'
_FONTS = (
    f'<font><sz val="11"/>{_FONT}</font>',
    f'<font><b/><sz val="13"/>{_FONT}</font>',
    f'<font><b/><sz val="11"/>{_FONT}</font>',
    f'<font><sz val="11"/><color rgb="FF555555"/>{_FONT}</font>',
)
_LEVEL = 2
"""Of compression: more would take more than twice the time, and save a sixth."""
_OWN_FORMAT = 164
"""The first number that Excel leaves for formats of a workbook."""


class Pane(NamedTuple):
    """How many rows and columns stay where they are when the others are moved."""

    rows: int
    columns: int


@dataclass(frozen=True, eq=False)
class Workbook:
    """Sheets one after the other, with what they share."""

    title: str
    created: datetime
    _texts: dict[str, int] = field(default_factory=dict, repr=False)
    _numbers: dict[int, int] = field(default_factory=dict, repr=False)
    _sheets: dict[str, bytes] = field(default_factory=dict, repr=False)

    def text(self, text: str) -> int:
        """The number of a text: every text is kept once."""
        return self._texts.setdefault(text[:LONGEST], len(self._texts))

    def number(self, decimals: int) -> int:
        """The look of numbers with so many digits after the point."""
        return self._numbers.setdefault(decimals, len(_LOOKS) + len(self._numbers))

    def labels(self, texts: Sequence[str], row: int, look: int = PLAIN, *, left: int = 0) -> str:
        """Texts side by side."""
        return "".join(
            text_cell(f"{column_name(left + at)}{row}", self.text(text), look) for at, text in enumerate(texts)
        )

    def add(self, name: str, rows: Iterable[str], *, widths: Sequence[tuple[int, int, int]], pane: Pane) -> None:
        """Add a sheet of finished rows; widths are those of columns from a first to a last."""
        view = '<sheetView workbookViewId="0"/>'
        if pane.rows:
            corner = "bottomRight" if pane.columns else "bottomLeft"
            across = f'xSplit="{pane.columns}" ' if pane.columns else ""
            view = (
                f'<sheetView workbookViewId="0"><pane {across}ySplit="{pane.rows}" topLeftCell='
                f'"{column_name(pane.columns)}{pane.rows + 1}" activePane="{corner}" state="frozen"/></sheetView>'
            )
        wide = "".join(f'<col min="{a + 1}" max="{b + 1}" width="{width}" customWidth="1"/>' for a, b, width in widths)
        parts = [f'{_XML}<worksheet xmlns="{_MAIN}"><sheetViews>{view}</sheetViews><cols>{wide}</cols><sheetData>']
        self._sheets[name] = "".join([*parts, *rows, "</sheetData></worksheet>"]).encode()

    def content(self) -> bytes:
        """The file."""
        found = BytesIO()
        with ZipFile(found, "w") as archive:
            for path, part in self._parts():
                about = ZipInfo(path)  # whose time is always the same
                about.compress_type = ZIP_DEFLATED
                archive.writestr(about, part, compresslevel=_LEVEL)
        return found.getvalue()

    def _parts(self) -> Iterable[tuple[str, str | bytes]]:
        numbers = range(1, len(self._sheets) + 1)
        types = "".join(
            f'<Override PartName="{path}" ContentType="application/vnd.openxmlformats-{kind}+xml"/>'
            for path, kind in (
                ("/xl/workbook.xml", f"{_OFFICE}.sheet.main"),
                *((f"/xl/worksheets/sheet{number}.xml", f"{_OFFICE}.worksheet") for number in numbers),
                ("/xl/styles.xml", f"{_OFFICE}.styles"),
                ("/xl/sharedStrings.xml", f"{_OFFICE}.sharedStrings"),
                ("/docProps/core.xml", "package.core-properties"),
            )
        )
        yield (
            "[Content_Types].xml",
            f'{_XML}<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
            f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Default Extension="xml" ContentType="application/xml"/>{types}</Types>',
        )
        core = f"{_PACKAGE}/relationships/metadata/core-properties"
        yield "_rels/.rels", _relations((f"{_RELATION}/officeDocument", "xl/workbook.xml"), (core, "docProps/core.xml"))
        yield "docProps/core.xml", self._core()
        sheets = "".join(
            f'<sheet name={quoteattr(name)} sheetId="{number}" r:id="rId{number}"/>'
            for number, name in zip(numbers, self._sheets, strict=True)
        )
        yield (
            "xl/workbook.xml",
            f'{_XML}<workbook xmlns="{_MAIN}" xmlns:r="{_RELATION}"><sheets>{sheets}</sheets></workbook>',
        )
        yield (
            "xl/_rels/workbook.xml.rels",
            _relations(
                *((f"{_RELATION}/worksheet", f"worksheets/sheet{number}.xml") for number in numbers),
                (f"{_RELATION}/styles", "styles.xml"),
                (f"{_RELATION}/sharedStrings", "sharedStrings.xml"),
            ),
        )
        yield "xl/styles.xml", self._styles()
        yield from (
            (f"xl/worksheets/sheet{n}.xml", part) for n, part in zip(numbers, self._sheets.values(), strict=True)
        )
        texts = "".join(f'<si><t xml:space="preserve">{as_xml(text)}</t></si>' for text in self._texts)
        yield "xl/sharedStrings.xml", f'{_XML}<sst xmlns="{_MAIN}" uniqueCount="{len(self._texts)}">{texts}</sst>'

    def _core(self) -> str:
        time = f'<dcterms:{{0}} xsi:type="dcterms:W3CDTF">{self.created:%Y-%m-%dT%H:%M:%SZ}</dcterms:{{0}}>'
        return (
            f'{_XML}<cp:coreProperties xmlns:cp="{_PACKAGE}/metadata/core-properties" '
            'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" '
            'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
            f"<dc:title>{as_xml(self.title)}</dc:title>{time.format('created')}{time.format('modified')}"
            "</cp:coreProperties>"
        )

    def _styles(self) -> str:
        formats = "".join(
            f'<numFmt numFmtId="{_OWN_FORMAT + at}" formatCode="#,##0{"." + "0" * digits if digits else ""}"/>'
            for at, digits in enumerate(self._numbers)
        )
        own = "".join(
            f'<xf numFmtId="{_OWN_FORMAT + at}" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
            for at in range(len(self._numbers))
        )
        counted = f'<numFmts count="{len(self._numbers)}">{formats}</numFmts>' if formats else ""
        return (
            f'{_XML}<styleSheet xmlns="{_MAIN}">{counted}<fonts count="{len(_FONTS)}">{"".join(_FONTS)}</fonts>'
            '<fills count="2"><fill><patternFill patternType="none"/></fill>'
            '<fill><patternFill patternType="gray125"/></fill></fills>'
            '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
            '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
            f'<cellXfs count="{len(_LOOKS) + len(self._numbers)}">{"".join(_LOOKS)}{own}</cellXfs>'
            '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
        )


def text_cell(place: str, text: int, look: int = PLAIN) -> str:
    """A cell that shows the text of a number."""
    return f'<c r="{place}" s="{look}" t="s"><v>{text}</v></c>'


def column_name(column: int) -> str:
    """The letters of a column, which are counted from 0.

    >>> column_name(0), column_name(25), column_name(26), column_name(16_383)
    ('A', 'Z', 'AA', 'XFD')
    """
    name = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        name = chr(ord("A") + letter) + name
    return name


def refuse_beyond_excel(rows: int, columns: int) -> None:
    """Refuse what a sheet has no room for."""
    if rows > MOST_ROWS or columns > MOST_COLUMNS:
        raise RefusedError(
            "workbook",
            expected=f"at most {MOST_ROWS:,} rows and {MOST_COLUMNS:,} columns, as Excel has",
            found=f"{rows:,} and {columns:,}",
            do="put other dimensions into the columns, choose fewer codes, or ask for CSV",
            status=403,
        )


# Parts of XML.

_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_OFFICE = "officedocument.spreadsheetml"
_NO_XML = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")
_LOOKS_ESCAPED = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")


def as_xml(text: str) -> str:
    r"""A text as it stands in XML; what XML has no way to write is written as Excel does.

    >>> as_xml("a < b\x01"), as_xml("_x0041_")
    ('a &lt; b_x0001_', '_x005F_x0041_')
    """
    plain = _LOOKS_ESCAPED.sub("_x005F_", text)
    return escape(_NO_XML.sub(lambda found: f"_x{ord(found[0]):04X}_", plain))


def _relations(*known: tuple[str, str]) -> str:
    each = "".join(
        f'<Relationship Id="rId{number}" Type="{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(known, start=1)
    )
    return f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">{each}</Relationships>'
