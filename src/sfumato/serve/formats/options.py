"""How an answer is to be written: codes or texts, a title, what goes into rows and columns."""

from dataclasses import dataclass
from typing import Literal

from sfumato.serve.errors import RefusedError

Texts = Literal["codes", "texts", "both"]
_TEXTS: dict[str, Texts] = {"usecodes": "codes", "usetexts": "texts", "usecodesandtexts": "both"}
_SEPARATORS = {"separatortab": "\t", "separatorspace": " ", "separatorsemicolon": ";"}
PARAMETERS = (
    "UseCodes",
    "UseTexts",
    "UseCodesAndTexts",
    "IncludeTitle",
    "SeparatorTab",
    "SeparatorSpace",
    "SeparatorSemicolon",
    "ByteOrderMark",
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a client may choose about the writing of an answer."""

    texts: Texts | None = None
    """Codes, texts or both; each format has a habit of its own where nothing is said."""
    title: bool = False
    separator: str = ","
    byte_order_mark: bool = False
    """Whether a CSV file begins with the mark by which Excel knows UTF-8."""
    heading: tuple[str, ...] | None = None
    """The dimensions that go into columns; the metrics when not given."""
    stub: tuple[str, ...] | None = None
    source: str = ""
    license: str = ""
    url: str = ""
    linked: bool = True
    """Whether the table is at an address of its own, which its answers name; an ad-hoc one is nowhere."""

    @classmethod
    def read(
        cls,
        parameters: list[str],
        *,
        heading: tuple[str, ...] | None = None,
        stub: tuple[str, ...] | None = None,
        source: str = "",
        license: str = "",  # noqa: A002 — the field has this name
        url: str = "",
    ) -> "Options":
        """Read the words of `outputFormatParams`, whatever their case."""
        texts: Texts | None = None
        separator, title, mark = ",", False, False
        for word in parameters:
            low = word.strip().lower()
            if low in _TEXTS:
                texts = _TEXTS[low]
            elif low in _SEPARATORS:
                separator = _SEPARATORS[low]
            elif low == "includetitle":
                title = True
            elif low == "byteordermark":
                mark = True
            elif low:
                raise RefusedError(
                    "outputFormatParams", expected=f"some of {', '.join(PARAMETERS)}", found=word, do="correct it"
                )
        return cls(
            texts=texts,
            title=title,
            separator=separator,
            byte_order_mark=mark,
            heading=heading,
            stub=stub,
            source=source,
            license=license,
            url=url,
        )
