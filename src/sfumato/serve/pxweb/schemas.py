"""What PxWebApi version 2 sends and takes, for the OpenAPI document."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_DIMENSIONS = 100
"""Dimensions, or other words, that a question may name; tables have far fewer."""
Codes = Annotated[list[str], Field(fail_fast=True)]
"""There may be as many as a body has room for, so that reading them ends at the first that is none."""
Names = Annotated[list[str], Field(fail_fast=True, max_length=MOST_DIMENSIONS)]

OutputValues = Literal["aggregated", "single"]


class Link(BaseModel):
    """A link to a related resource."""

    rel: str
    hreflang: str
    href: str


class Language(BaseModel):
    """A language of the server."""

    id: str
    label: str


class SourceReference(BaseModel):
    """How to quote the source."""

    language: str
    text: str


class FeatureParameter(BaseModel):
    """A setting of a feature."""

    key: str
    value: str


class Feature(BaseModel):
    """Something optional that the server can do."""

    id: str
    params: list[FeatureParameter] = []


class ConfigResponse(BaseModel):
    """What clients need to know of the server."""

    apiVersion: str  # noqa: N815 — the standard writes it so, here and below
    appVersion: str  # noqa: N815
    languages: list[Language]
    defaultLanguage: str  # noqa: N815
    maxDataCells: int  # noqa: N815
    maxCallsPerTimeWindow: int  # noqa: N815
    timeWindow: int  # noqa: N815
    license: str
    sourceReferences: list[SourceReference]  # noqa: N815
    defaultDataFormat: str  # noqa: N815
    dataFormats: list[str]  # noqa: N815
    features: list[Feature]


class PathElement(BaseModel):
    """A folder above a table."""

    id: str
    label: str


class Table(BaseModel):
    """A table in a list."""

    type: str
    id: str
    label: str
    description: str
    updated: str
    firstPeriod: str  # noqa: N815
    lastPeriod: str  # noqa: N815
    category: str
    variableNames: list[str]  # noqa: N815
    discontinued: bool
    source: str
    timeUnit: str  # noqa: N815
    paths: list[list[PathElement]]
    links: list[Link]


class TableResponse(Table):
    """A table by itself."""

    language: str


class Page(BaseModel):
    """Which page of a list this is."""

    pageNumber: int  # noqa: N815
    pageSize: int  # noqa: N815
    totalElements: int  # noqa: N815
    totalPages: int  # noqa: N815
    links: list[Link]


class TablesResponse(BaseModel):
    """A page of the list of tables."""

    language: str
    tables: list[Table]
    page: Page
    links: list[Link]


class Category(BaseModel):
    """The codes of a dimension."""

    index: dict[str, int]
    label: dict[str, str]
    unit: dict[str, dict[str, Any]] | None = None
    note: dict[str, list[str]] | None = None


class Dimension(BaseModel):
    """A dimension of a dataset."""

    label: str
    category: Category
    extension: dict[str, Any]


class Dataset(BaseModel):
    """A dataset of JSON-stat 2; metadata have no `value`."""

    model_config = ConfigDict(populate_by_name=True)

    version: str
    class_: str = Field(alias="class")
    href: str
    label: str
    source: str
    updated: str
    note: list[str]
    role: dict[str, list[str]]
    id: list[str]
    size: list[int]
    dimension: dict[str, Dimension]
    extension: dict[str, Any]
    value: list[float | None] | None = None
    status: dict[str, str] | None = None


class CodelistValue(BaseModel):
    """A code of a list, and for a group the codes it stands for."""

    code: str
    label: str
    valueMap: list[str]  # noqa: N815


class CodelistResponse(BaseModel):
    """A list of codes, or of groups of them, that a selection may name."""

    id: str
    label: str
    language: str
    languages: list[str]
    elimination: bool
    type: str
    values: list[CodelistValue]
    links: list[Link]


class VariableSelection(BaseModel):
    """The codes of one dimension, or expressions that stand for them."""

    variableCode: str = Field(description="name of the dimension")  # noqa: N815
    valueCodes: Codes = Field([], description="codes, or *, ?, top(n), bottom(n), range(a,b), from(a), to(b)")  # noqa: N815
    codelist: str | None = Field(None, description="a code list of the dimension, whose codes are meant")
    outputValues: OutputValues | None = Field(  # noqa: N815
        None, description="of a code list of groups: figures of the groups, or of the single codes in them"
    )


class Placement(BaseModel):
    """What goes into columns and what into rows."""

    heading: Names | None = None
    stub: Names | None = None


class VariablesSelection(BaseModel):
    """Which part of a table is asked for; a dimension that is not named is left out."""

    selection: Annotated[list[VariableSelection], Field(fail_fast=True, max_length=MOST_DIMENSIONS)]
    placement: Placement | None = None


class SelectionResponse(VariablesSelection):
    """A selection that the server proposes or keeps."""

    language: str
    links: list[Link]


class SavedQuery(BaseModel):
    """A question to keep."""

    tableId: str  # noqa: N815
    selection: VariablesSelection
    language: str = "en"
    outputFormat: str | None = None  # noqa: N815
    outputFormatParams: Names = []  # noqa: N815
    id: str | None = None


class SavedQueryResponse(BaseModel):
    """A question that is kept."""

    language: str
    id: str
    savedQuery: SavedQuery  # noqa: N815
    links: list[Link]
