"""What there is of a table, as a constraint of its dataflow: the codes of dimensions that have figures."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sfumato.serve.sdmx.flow import VERSION, Component, Flow
from sfumato.serve.sdmx.xml import Office, escaped, header, opening, reference, worded


def write_availability(
    flow: Flow, places: Mapping[Component, Sequence[int]], office: Office, *, observations: int, prepared: datetime
) -> bytes:
    """A message with the codes of dimensions for which there are figures, and how many figures these are."""
    name = f"CC_{flow.id}"
    number = (
        f'<com:Annotation id="obs_count"><com:AnnotationTitle>{observations}</com:AnnotationTitle>'
        "<com:AnnotationType>sdmx_metrics</com:AnnotationType></com:Annotation>"
    )
    keys = "".join(_available(component, some) for component, some in places.items())
    body = (
        f'<str:ContentConstraint id="{escaped(name)}" agencyID="{flow.agency}" version="{VERSION}" type="Actual">'
        f"<com:Annotations>{number}</com:Annotations>{worded('com:Name', f'What there is of {flow.table.title}')}"
        f"<str:ConstraintAttachment><str:Dataflow>{reference(flow, 'datastructure', 'Dataflow', flow.id)}"
        f'</str:Dataflow></str:ConstraintAttachment><str:CubeRegion include="true">{keys}</str:CubeRegion>'
        "</str:ContentConstraint>"
    )
    top = header(office.agency, message=name, prepared=prepared, source=office.name)
    content = f"<mes:Structures><str:Constraints>{body}</str:Constraints></mes:Structures>"
    return f"{opening('Structure', 'str')}{top}{content}</mes:Structure>".encode()


def _available(component: Component, places: Sequence[int]) -> str:
    codes = [component.codes[place] for place in places]
    if component.is_time:
        begin, end = (f'<com:{tag} isInclusive="true">' for tag in ("StartPeriod", "EndPeriod"))
        ends = f"{begin}{codes[0]}</com:StartPeriod>{end}{codes[-1]}</com:EndPeriod>"
        return f'<com:KeyValue id="{component.id}"><com:TimeRange>{ends}</com:TimeRange></com:KeyValue>'
    values = "".join(f"<com:Value>{escaped(code)}</com:Value>" for code in codes)
    return f'<com:KeyValue id="{component.id}">{values}</com:KeyValue>'
