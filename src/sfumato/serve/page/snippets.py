"""How to get a selection with other programs: a few lines of R, Python or Power Query that work as they are."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sfumato.serve.core.model import Selection
from sfumato.serve.core.selection import alone
from sfumato.serve.formats.json_stat import BASE, LANGUAGE
from sfumato.serve.page.question import ReaderQuestion
from sfumato.serve.pxweb.v1 import DATABASE


class Snippet(NamedTuple):
    """Lines for one program."""

    id: str
    title: str
    hint: str
    text: str


def data_address(question: ReaderQuestion, base: str, written: str, *parameters: str, layout: bool = False) -> str:
    """The address of the selection in a format."""
    return f"{base}{BASE}/tables/{question.table.id}/data?{question.api_query(written, *parameters, layout=layout)}"


def snippets(question: ReaderQuestion, selection: Selection, base: str) -> tuple[Snippet, ...]:
    """Lines for exactly this selection; `base` is the address of the server."""
    wanted, lists = _wanted(question, selection), {one.name: one.grouping for one in question.grouped()}
    stat, text = data_address(question, base, "json-stat2"), data_address(question, base, "csv")
    chosen = ",\n".join(f"    {_quoted(name)}: {json.dumps(codes, ensure_ascii=False)}" for name, codes in wanted)
    vectors = ",\n".join(f"  {_quoted(name)} = c({', '.join(map(_quoted, codes))})" for name, codes in wanted)
    old = f"{base}/api/v1/{LANGUAGE}/{DATABASE}/{question.table.id}"
    found = (
        Snippet(
            "excel",
            "Excel, Power Query",
            "In Excel: Data, Get Data, From Other Sources, Blank Query, Advanced Editor. Refresh brings new figures.",
            f'let\n    Source = Csv.Document(Web.Contents("{text}"),\n'
            "        [Delimiter = \",\", Encoding = 65001, QuoteStyle = QuoteStyle.Csv]),\n"
            "    Figures = Table.PromoteHeaders(Source, [PromoteAllScalars = true])\nin\n    Figures",
        ),
        Snippet(
            "pxwebpy",
            "Python, pxwebpy",
            "pip install pxwebpy pandas",
            f"import pandas as pd\nfrom pxweb import PxApi\n\napi = PxApi({_quoted(base + BASE)})\n"
            f"data = api.get_table_data({_quoted(question.table.id)}, {{\n{chosen},\n}}{_code_list(lists)})\n"
            "frame = pd.DataFrame(data)",
        ),
        Snippet(
            "pyjstat",
            "Python, pyjstat",
            "pip install pyjstat",
            "from pyjstat import pyjstat\n\n"
            f'address = {_quoted(stat)}\nframe = pyjstat.Dataset.read(address).write("dataframe")',
        ),
        Snippet(
            "pxweb",
            "R, pxweb",
            'install.packages("pxweb")',
            f"library(pxweb)\n\nquery <- list(\n{vectors}\n)\n"
            f"found <- pxweb_get({_quoted(old)}, query)\n"
            'frame <- as.data.frame(found, column.name.type = "text", variable.value.type = "text")',
        ),
        Snippet(
            "rjstat",
            "R, rjstat",
            'install.packages("rjstat")',
            f"library(rjstat)\n\nframe <- fromJSONstat({_quoted(stat)})",
        ),
    )  # fmt: skip
    # PxWebApi 1 knows no groups of codes.
    return tuple(snippet for snippet in found if not (lists and snippet.id == "pxweb"))


def _wanted(question: ReaderQuestion, selection: Selection) -> list[tuple[str, Sequence[str]]]:
    """The codes of every variable that is not left out; a star for all."""
    found: list[tuple[str, Sequence[str]]] = []
    axes = zip((*question.dimensions, question.table.contents), (*selection.places, selection.metrics), strict=True)
    for dimension, places in axes:
        if places is not None:
            every = len(places) == len(dimension)
            found.append((dimension.name, ["*"] if every else [alone(dimension.codes[place]) for place in places]))
    return found


def _code_list(lists: Mapping[str, str]) -> str:
    """The groupings as pxwebpy takes them."""
    return f", code_list={json.dumps(lists, ensure_ascii=False)}" if lists else ""


def _quoted(text: str) -> str:
    """A text as Python and R both read it."""
    return json.dumps(text, ensure_ascii=False)
