"""What a client of PxWebApi version 2 asks for, from the query of an address or from a body."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sfumato.serve.errors import RefusedError
from sfumato.serve.formats import FORMATS
from sfumato.serve.formats.json_stat import LANGUAGE
from sfumato.serve.formats.options import Options
from sfumato.serve.model import Selection, ServedTable
from sfumato.serve.pxweb.schemas import VariablesSelection
from sfumato.serve.selection import default, select
from sfumato.serve.settings import Settings

DEFAULT_FORMAT = next(iter(FORMATS))
_SELECTING = ("valuecodes", "codelist", "outputvalues")
_INDEXED = re.compile(rf"({'|'.join(_SELECTING)})\[(.*)\]", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question about a table, as it was written."""

    codes: dict[str, list[str]] = field(default_factory=dict)
    codelists: dict[str, str] = field(default_factory=dict)
    format: str = DEFAULT_FORMAT
    parameters: list[str] = field(default_factory=list)
    heading: tuple[str, ...] | None = None
    stub: tuple[str, ...] | None = None

    @classmethod
    def read(cls, query: Iterable[tuple[str, str]]) -> "Asked":
        """Read the query of an address; names do not mind the case. What selects nothing that is known is refused."""
        codes: dict[str, list[str]] = {}
        codelists: dict[str, str] = {}
        words: dict[str, list[str]] = {}
        for name, text in query:
            indexed = _INDEXED.fullmatch(name)
            if indexed is None:
                if "[" in name or name.lower() in _SELECTING:
                    raise RefusedError(
                        "query", expected="valueCodes[name]=… or codelist[name]=…", found=name, do="correct it"
                    )
                words[name.lower()] = [*words.get(name.lower(), []), text]
            elif indexed[1].lower() == "valuecodes":
                codes.setdefault(indexed[2], []).extend(split(text))
            elif indexed[1].lower() == "codelist":
                codelists[indexed[2]] = text
            elif text.lower() != "aggregated":
                raise RefusedError(name, expected="aggregated", found=text, do="leave it out, and name the codes")
        refuse_language(words.get("lang", [LANGUAGE])[-1])
        return cls(
            codes=codes,
            codelists=codelists,
            format=format_named(words.get("outputformat", [DEFAULT_FORMAT])[-1]),
            parameters=[word for text in words.get("outputformatparams", []) for word in text.split(",")],
            heading=_names(words.get("heading")),
            stub=_names(words.get("stub")),
        )

    def with_body(self, body: VariablesSelection | None) -> "Asked":
        """The same question with the selection of a body."""
        if body is None:
            return self
        self.refuse_selection("the body")
        codes: dict[str, list[str]] = {}
        codelists = {one.variableCode: one.codelist for one in body.selection if one.codelist}
        for one in body.selection:
            if one.valueCodes or not one.codelist:
                codes.setdefault(one.variableCode, []).extend(one.valueCodes)
        placed = body.placement
        return Asked(
            codes=codes,
            codelists=codelists,
            format=self.format,
            parameters=self.parameters,
            heading=self.heading if placed is None or placed.heading is None else tuple(placed.heading),
            stub=self.stub if placed is None or placed.stub is None else tuple(placed.stub),
        )

    def refuse_selection(self, place: str) -> None:
        """Refuse to select in an address what is selected in another place."""
        for name in (*self.codes, *self.codelists):
            raise RefusedError(
                "query", expected=f"the selection of {place}", found=f"one of {name} too", do="choose one"
            )

    def selection(self, table: ServedTable) -> Selection:
        """The selection that is meant; the default one where nothing is selected."""
        if not self.codes and not self.codelists:
            return default(table)
        unknown = next((name for name in self.codes if name.lower() not in table.by_name), None)
        if unknown is not None:  # also where it has no codes
            known = ", ".join(axis.name for axis in table.axes)
            raise RefusedError(
                f"table '{table.id}'", expected=f"one of its dimensions: {known}", found=unknown, do="correct it"
            )
        # Not naming codes and naming none are the same wish: leave the dimension out.
        return select(table, {name: codes for name, codes in self.codes.items() if codes}, codelists=self.codelists)

    def options(self, settings: Settings) -> Options:
        """How the answer is to be written."""
        return Options.read(
            self.parameters,
            heading=self.heading,
            stub=self.stub,
            source=settings.source,
            license=settings.license,
            url=settings.url,
        )


def split(text: str) -> list[str]:
    """Codes and expressions between commas; a comma inside parentheses or brackets belongs to its expression.

    >>> split("A,range(B,D),[0,5)")
    ['A', 'range(B,D)', '[0,5)']
    """
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def format_named(name: str) -> str:
    """The name of a format, in the case that it has."""
    if name.lower() not in FORMATS:
        raise RefusedError("outputFormat", expected=f"one of {', '.join(FORMATS)}", found=name, do="choose one of them")
    return name.lower()


def refuse_language(language: str) -> None:
    """Refuse a language that the server does not speak."""
    if language.lower() != LANGUAGE:
        raise RefusedError("lang", expected=LANGUAGE, found=language, do="leave it out")


def _names(texts: Sequence[str] | None) -> tuple[str, ...] | None:
    if texts is None:
        return None
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())
