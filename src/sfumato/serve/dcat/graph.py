"""Statements about things, written as JSON-LD, Turtle and RDF/XML: the same ones in each."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape, quoteattr

PREFIXES = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_UNSAFE = {**{chr(code): f"%{code:02X}" for code in range(0x21)}, **{one: f"%{ord(one):02X}" for one in '<>"{}|\\^`'}}


@dataclass(frozen=True, kw_only=True)
class Literal:
    """A text: in a language, of a kind such as xsd:date, or neither."""

    text: str
    language: str = ""
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Address:
    """Something that has an address."""

    address: str

    @property
    def written(self) -> str:
        """The address without characters that no address may have."""
        return "".join(_UNSAFE.get(character, character) for character in self.address)


@dataclass(frozen=True, kw_only=True)
class Thing:
    """Something, what it is, and statements about it; without an address it is known by these alone."""

    kind: str
    address: str = ""
    said: Sequence[tuple[str, "Value"]] = ()
    """Properties with their values; one may have several."""


Value = Literal | Address | Thing


def _each(things: Iterable[Thing]) -> list[Thing]:
    """The things, and those with an address that are named in them, each once."""
    found: dict[tuple[str, str], Thing] = {}
    left = list(things)[::-1]
    while left:
        thing = left.pop()
        found.setdefault((thing.address or str(id(thing)), thing.kind), thing)
        inner = [value for _, value in thing.said if isinstance(value, Thing) and value.address]
        left += [one for one in inner[::-1] if (one.address, one.kind) not in found]
    return list(found.values())


def write_json_ld(things: Iterable[Thing]) -> bytes:
    """The statements as JSON-LD."""
    content = {"@context": PREFIXES, "@graph": [_described(thing) for thing in _each(things)]}
    return json.dumps(content, ensure_ascii=False, indent=1).encode("utf-8", "replace")


def _json(value: Value) -> dict[str, Any]:
    match value:
        case Literal(text=text, language=language, kind=kind):
            return {"@value": text} | ({"@language": language} if language else {}) | ({"@type": kind} if kind else {})
        case Address():
            return {"@id": value.written}
        case Thing(address=""):
            return _described(value)
        case Thing(address=address):
            return {"@id": Address(address=address).written}


def _described(thing: Thing) -> dict[str, Any]:
    found: dict[str, Any] = {"@id": Address(address=thing.address).written} if thing.address else {}
    found["@type"] = thing.kind
    for name, one in thing.said:
        found.setdefault(name, []).append(_json(one))
    return found


def write_turtle(things: Iterable[Thing]) -> bytes:
    """The statements as Turtle."""
    lines = [f"@prefix {prefix}: <{space}> ." for prefix, space in PREFIXES.items()]
    for thing in _each(things):
        subject = f"<{Address(address=thing.address).written}>" if thing.address else "[]"
        lines.append(f"{subject} {_predicates(thing)} .")
    return "\n".join([*lines, ""]).encode("utf-8", "replace")


def _predicates(thing: Thing) -> str:
    return " ;\n  ".join([f"a {thing.kind}", *(f"{name} {_turtle(value)}" for name, value in thing.said)])


def _turtle(value: Value) -> str:
    match value:
        case Literal(text=text, language=language, kind=kind):
            # The escapes of JSON are escapes of Turtle too.
            return json.dumps(text) + (f"@{language}" if language else f"^^{kind}" if kind else "")
        case Address():
            return f"<{value.written}>"
        case Thing(address=""):
            return f"[ {_predicates(value)} ]"
        case Thing(address=address):
            return f"<{Address(address=address).written}>"


def write_rdf_xml(things: Iterable[Thing]) -> bytes:
    """The statements as RDF/XML."""
    spaces = "".join(f' xmlns:{prefix}="{space}"' for prefix, space in {"rdf": _RDF, **PREFIXES}.items())
    body = "".join(part for thing in _each(things) for part in _element(thing))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<rdf:RDF{spaces}>{body}</rdf:RDF>\n'.encode("utf-8", "replace")


def _element(thing: Thing) -> Iterator[str]:
    about = f" rdf:about={quoteattr(Address(address=thing.address).written)}" if thing.address else ""
    yield f"<{thing.kind}{about}>"
    for name, value in thing.said:
        match value:
            case Literal(text=text, language=language, kind=kind):
                datatype = f"{PREFIXES['xsd']}{kind.removeprefix('xsd:')}"
                more = f' xml:lang="{language}"' if language else f' rdf:datatype="{datatype}"' if kind else ""
                yield f"<{name}{more}>{escape(_writable(text))}</{name}>"
            case Address():
                yield f"<{name} rdf:resource={quoteattr(value.written)}/>"
            case Thing(address=""):
                yield f"<{name}>{''.join(_element(value))}</{name}>"
            case Thing(address=address):
                yield f"<{name} rdf:resource={quoteattr(Address(address=address).written)}/>"
    yield f"</{thing.kind}>"


def _writable(text: str) -> str:
    """The text without what XML has no way to write."""
    return "".join(one if one >= " " or one in "\t\n\r" else "\ufffd" for one in text if one not in "\ufffe\uffff")
