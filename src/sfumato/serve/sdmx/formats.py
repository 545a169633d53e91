"""The formats of data and of structures, each with the media types it is asked for by."""

from collections.abc import Callable, Mapping

from sfumato.serve.sdmx.arranged import Arranged
from sfumato.serve.sdmx.csv_data import write_csv_1, write_csv_2
from sfumato.serve.sdmx.json_data import write_json
from sfumato.serve.sdmx.negotiation import Offer
from sfumato.serve.sdmx.xml_data import write_generic, write_structure_specific

_CSV = "application/vnd.sdmx.data+csv"
_XML = ("application/xml", "text/xml")
Writer = Callable[[Arranged, str], bytes]

WRITERS: Mapping[Offer, Writer] = {
    Offer(
        name="genericdata",
        version="2.1",
        media_types=("application/vnd.sdmx.genericdata+xml", "application/vnd.sdmx.generic+xml", *_XML),
    ): write_generic,
    Offer(
        name="structurespecificdata",
        version="2.1",
        media_types=("application/vnd.sdmx.structurespecificdata+xml",),
    ): write_structure_specific,
    Offer(
        name="jsondata",
        version="1.0.0",
        media_types=("application/vnd.sdmx.data+json", "application/json", "text/json"),
    ): write_json,
    Offer(name="csvdata", version="1.0.0", media_types=(_CSV, "text/csv")): write_csv_1,
    Offer(name="csvdata2", version="2.0.0", media_types=(_CSV,)): write_csv_2,
}
"""How data are written; the first is for clients that do not mind."""
CSV = tuple(offer for offer in WRITERS if offer.media_types[0] == _CSV)
"""The formats that are rows."""
STRUCTURE = Offer(name="structure", version="2.1", media_types=("application/vnd.sdmx.structure+xml", *_XML))
"""How structures are written."""
