"""Codes and concepts as XML, each with its name and what is to be said of it."""

from collections.abc import Iterable, Iterator

from sfumato.serve.sdmx.flow import DECIMALS, OBS_STATUS, OBS_VALUE, UNIT_MEASURE, Component, Flow
from sfumato.serve.sdmx.observed import NAMES, meaning
from sfumato.serve.sdmx.xml import escaped, worded

_SHARED = (
    (OBS_VALUE, "Observation value", ""),
    (OBS_STATUS, "Observation status", "whether the figure is normal, estimated, missing, suppressed or unreliable"),
    (UNIT_MEASURE, "Unit of measure", ""),
    (DECIMALS, "Decimals worth showing", "figures are given in full; further digits say nothing"),
)
_TOTAL = "total with a protection of its own: the cells need not add up to it"


def concepts(flow: Flow) -> Iterator[str]:
    """The concepts of a dataflow: its dimensions, the figure and the attributes."""
    for one in flow.components:
        yield _item("Concept", one.id, one.dimension.label)
    for id, name, text in _SHARED:  # noqa: A001 — the standard has this word
        yield _item("Concept", id, name, text)


def codes(flow: Flow, component: Component) -> Iterator[str]:
    """The codes of a dimension; one whose identifier differs says what the bundle calls it."""
    dimension = component.dimension
    described = {metric.code: metric.description for metric in flow.table.metrics} if dimension.role == "metric" else {}
    if dimension.total is not None:
        described[dimension.total] = _TOTAL
    for id, code, label in zip(component.codes, dimension.codes, dimension.labels, strict=True):  # noqa: A001
        original = annotations([("CODE", code)]) if id != code else ""
        yield _item("Code", id, label, described.get(code, ""), original)


def statuses() -> Iterator[str]:
    """The codes of the list of statuses."""
    return (_item("Code", letter, name, meaning(letter)) for letter, name in NAMES.items())


def annotations(said: Iterable[tuple[str, str]]) -> str:
    """Annotations, each with its kind."""
    found = "".join(
        f"<com:Annotation><com:AnnotationType>{kind}</com:AnnotationType>{worded('com:AnnotationText', text)}"
        "</com:Annotation>"
        for kind, text in said
    )
    return f"<com:Annotations>{found}</com:Annotations>"


def _item(tag: str, id: str, name: str, description: str = "", before: str = "") -> str:  # noqa: A002
    text = worded("com:Description", description) if description else ""
    return f'<str:{tag} id="{escaped(id)}">{before}{worded("com:Name", name or id)}{text}</str:{tag}>'
