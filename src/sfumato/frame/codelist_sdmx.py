"""SDMX code lists: structure messages in SDMX-ML 2.0, 2.1 and 3.0 and in SDMX-JSON, as registries give them out.

XML is read without any document type, so that nothing is expanded and nothing fetched.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from sfumato.errors import ReleaseError
from sfumato.frame.classifications import Listed

_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
Names = Mapping[str, str]
"""Words by language; one without a language is under an empty text."""


class _Builder(TreeBuilder):
    """Builds the tree of a document, and refuses document types: they are what entities are declared in."""

    def doctype(self, name: str, pubid: str, system: str) -> None:  # noqa: ARG002 (of the parser's shape)
        """Refuse."""
        raise ParseError("a document type (<!DOCTYPE …>), which is not read")


def sdmx_xml(content: bytes, named: str, wanted: str | None, language: str | None) -> Listed:
    """The code list of an SDMX-ML message."""
    parser = XMLParser(target=_Builder())  # noqa: S314
    try:
        parser.feed(content)
        tree: Element = parser.close()
    except ParseError as error:
        raise ReleaseError(
            named, expected="SDMX-ML that can be read", found=str(error), do="export the code list again"
        ) from error
    lists = {str(element.get("id")): element for element in tree.iter() if _local(element) in ("Codelist", "CodeList")}
    name = _one_of(list(lists), named, wanted)
    codes = [element for element in lists[name] if _local(element) == "Code"]
    return _listed(
        named,
        name,
        codes=[str(code.get("id") or code.get("value") or "") for code in codes],
        names=[_names_of(code) for code in codes],
        parents=[_parent_of(code) for code in codes],
        language=language,
    )


def _local(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _names_of(code: Element) -> Names:
    names = {e.get(_LANG, ""): (e.text or "").strip() for e in code if _local(e) == "Name"}
    return names or {e.get(_LANG, ""): (e.text or "").strip() for e in code if _local(e) == "Description"}


def _parent_of(code: Element) -> str | None:
    if code.get("parentCode"):
        return code.get("parentCode")
    for inside in code:
        if _local(inside) == "Parent":
            references = [element.get("id") for element in inside.iter() if _local(element) == "Ref"]
            return references[0] if references else (inside.text or "").strip() or None
    return None


def sdmx_json(content: bytes, named: str, wanted: str | None, language: str | None) -> Listed:
    """The code list of an SDMX-JSON structure message."""
    try:
        message = json.loads(content.decode("utf-8-sig"))
        found = (message.get("data") or message)["codelists"]
        lists = {str(one["id"]): one for one in found}
        name = _one_of(list(lists), named, wanted)
        codes = lists[name].get("codes") or lists[name].get("items") or []
        return _listed(
            named,
            name,
            codes=[str(code["id"]) for code in codes],
            names=[dict(code.get("names") or {"": str(code.get("name") or "")}) for code in codes],
            parents=[code.get("parent") or None for code in codes],
            language=language,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReleaseError(
            named,
            expected="an SDMX-JSON structure message, with data.codelists and the codes of each",
            found="something else",
            do="export the code list again, or as CSV",
        ) from error


def _one_of(known: Sequence[str], named: str, wanted: str | None) -> str:
    if wanted is None and len(known) == 1:
        return known[0]
    if wanted in known:
        return str(wanted)
    raise ReleaseError(
        named,
        expected="one code list, or `id` to say which" if wanted is None else f"the code list '{wanted}'",
        found=", ".join(known[:10]) or "no code list",
        do=f'write codelist = {{ file = "…", id = "{known[0]}" }}'
        if known
        else "export the message with its code lists",
    )


def _listed(
    named: str,
    name: str,
    *,
    codes: Sequence[str],
    names: Sequence[Names],
    parents: Sequence[str | None],
    language: str | None,
) -> Listed:
    spoken = list(dict.fromkeys(lang for one in names for lang in one))
    if language is not None and spoken and language not in spoken:
        raise ReleaseError(
            named, expected=f"names in '{language}'", found=", ".join(filter(None, spoken)), do="correct `language`"
        )
    order = [language] if language is not None else ["en", *spoken]
    labels = [next((one[lang] for lang in order if one.get(lang)), "") for one in names]
    told = f", names in {order[0] if order[0] in spoken else spoken[0]}" if len(spoken) > 1 else ""
    return Listed(
        named=named,
        codes=codes,
        labels=[label or code for label, code in zip(labels, codes, strict=True)],
        places=[f"code {place}" for place in range(1, len(codes) + 1)],
        parents=parents if any(parents) else None,
        reading=f"SDMX code list {name}{told}",
    )


def is_json(message: Any) -> bool:
    """Whether the beginning of a file is that of a message in JSON."""
    return bytes(message).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


def is_xml(message: Any) -> bool:
    """Whether the beginning of a file is that of a message in XML."""
    bare = bytes(message).replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    return bare.startswith(b"<")
