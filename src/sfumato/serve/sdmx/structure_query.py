"""A structure query: which structures, with which others, and how much of each."""

from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.serve.errors import RefusedError, not_found
from sfumato.serve.sdmx.artefacts import KINDS, Artefact, Artefacts
from sfumato.serve.sdmx.xml_structure import Shown

DETAILS: Mapping[str, tuple[Shown, Shown]] = {
    "full": ("full", "full"),
    "allstubs": ("stub", "stub"),
    "referencestubs": ("full", "stub"),
    "allcompletestubs": ("complete", "complete"),
    "referencecompletestubs": ("full", "complete"),
    "referencepartial": ("full", "full"),
}
"""How much is shown of what is asked for, and of what comes along: code lists have no more codes than their table."""
LATER = frozenset(
    [
        "availableconstraint",
        "attachmentconstraint",
        "actualconstraint",
        "allowedconstraint",
        "contentconstraint",
        "categorisation",
        "categoryscheme",
        "customtypescheme",
        "dataconsumerscheme",
        "dataproviderscheme",
        "hierarchicalcodelist",
        "metadata",
        "metadataflow",
        "metadatastructure",
        "namepersonalisationscheme",
        "organisationscheme",
        "organisationunitscheme",
        "process",
        "provisionagreement",
        "reportingtaxonomy",
        "rulesetscheme",
        "schema",
        "structureset",
        "transformationscheme",
        "userdefinedoperatorscheme",
        "vtlmappingscheme",
    ]
)
"""What the standard has and this server does not."""
PARTS = ("kind", "agency", "id", "version")
"""The parts of a path, of which the last ones may be left out."""


@dataclass(frozen=True, kw_only=True)
class StructureQuery:
    """What is asked for."""

    asked: frozenset[Artefact]
    every: tuple[Artefact, ...]
    """With those that come along."""
    shown: tuple[Shown, Shown]

    @classmethod
    def read(cls, artefacts: Artefacts, path: Mapping[str, str], words: Mapping[str, str]) -> "StructureQuery":
        """Read the parts of a path and the parameters of an address."""
        kind = path["kind"].lower()
        if kind in LATER:
            raise RefusedError(
                "SDMX", expected=f"one of {', '.join(KINDS)}, data", found=kind, do="ask for one of them", status=501
            )
        if kind not in (*KINDS, "structure"):
            raise not_found("kind of structure", kind, f"ask for one of {', '.join(KINDS)}")
        detail = words.get("detail", "full").lower()
        if detail not in DETAILS:
            raise RefusedError("detail", expected=f"one of {', '.join(DETAILS)}", found=detail, do="choose one of them")
        asked = artefacts.asked(
            kind,
            agency=path.get("agency", "all"),
            id=path.get("id", "all"),
            version=path.get("version", "latest"),
        )
        every = artefacts.with_references(asked, words.get("references", "none").lower())
        if not asked:
            raise not_found(kind, "/".join(path.values()), f"`{kind}/all/all` lists what there is")
        return cls(asked=frozenset(asked), every=tuple(every), shown=DETAILS[detail])

    def shown_of(self, artefact: Artefact) -> Shown:
        """How much of a structure is shown."""
        itself, along = self.shown
        return itself if artefact in self.asked else along
