"""What all XML messages share: escaped text, namespaces, the header."""

import re
from collections.abc import Sequence
from datetime import datetime

from sfumato.serve.sdmx.flow import VERSION, Flow
from sfumato.serve.sdmx.ids import own_id

_SCHEMAS = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1"
NAMESPACES = {
    "mes": f"{_SCHEMAS}/message",
    "com": f"{_SCHEMAS}/common",
    "str": f"{_SCHEMAS}/structure",
    "gen": f"{_SCHEMAS}/data/generic",
    "ss": f"{_SCHEMAS}/data/structurespecific",
    "foot": f"{_SCHEMAS}/message/footer",
    "xsi": "http://www.w3.org/2001/XMLSchema-instance",
}
LANGUAGE = "en"
_ESCAPED = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def escaped(text: str) -> str:
    """A text as it may stand in an element or an attribute; what XML has no way to write becomes a question mark."""
    return _UNWRITABLE.sub("\ufffd", text).translate(_ESCAPED)


def worded(tag: str, text: str) -> str:
    """An element with a text in the language of the server."""
    return f'<{tag} xml:lang="{LANGUAGE}">{escaped(text)}</{tag}>'


def timestamp(moment: datetime) -> str:
    """A moment of universal time."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def opening(root: str, *prefixes: str, **namespaces: str) -> str:
    """The declaration and the opening of a message."""
    declared = {**{prefix: NAMESPACES[prefix] for prefix in ("mes", "com", *prefixes)}, **namespaces}
    spaces = " ".join(f'xmlns:{prefix}="{escaped(space)}"' for prefix, space in declared.items())
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<mes:{root} {spaces}>'


def header(agency: str, *, message: str, prepared: datetime, structure: str = "", source: str = "") -> str:
    """The header of a message."""
    return (
        f"<mes:Header><mes:ID>{escaped(message)}</mes:ID><mes:Test>false</mes:Test>"
        f'<mes:Prepared>{timestamp(prepared)}</mes:Prepared><mes:Sender id="{own_id(agency)}"/>{structure}'
        f"{worded('mes:Source', source) if source else ''}</mes:Header>"
    )


def structured_by(flow: Flow, at_observation: str, namespace: str = "") -> str:
    """The part of a header that says which structure the data have."""
    space = f' namespace="{escaped(namespace)}"' if namespace else ""
    name = escaped(flow.structure_id)
    return (
        f'<mes:Structure structureID="{name}"{space} dimensionAtObservation="{at_observation}"><com:Structure>'
        f'<Ref agencyID="{flow.agency}" id="{name}" version="{VERSION}" class="DataStructure"/>'
        f"</com:Structure></mes:Structure><mes:DataSetAction>Information</mes:DataSetAction>"
    )


def footer(notes: Sequence[str]) -> str:
    """What is to be said of the answer as a whole, after the data; nothing if there is nothing to say."""
    if not notes:
        return ""
    texts = "".join(worded("com:Text", note) for note in notes)
    # Annotations of a data set would say the same, but sdmx1 refuses messages that have some.
    return (
        f'<foot:Footer xmlns:foot="{NAMESPACES["foot"]}"><foot:Message code="0" severity="Information">{texts}'
        "</foot:Message></foot:Footer>"
    )
