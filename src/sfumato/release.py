"""A release: what is published, from which data, with which protection and budget; read from a file."""

import difflib
import re
import tomllib
from collections import Counter
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, field_validator, model_validator

from sfumato.engine.data_files import is_stored, local_path
from sfumato.errors import ReleaseError
from sfumato.frame import Described, Exact, Frame
from sfumato.keys import Secret, read_key
from sfumato.microdata import Microdata
from sfumato.privacy.account import Account
from sfumato.privacy.entries import store_of
from sfumato.privacy.guarantee import CONDITIONAL, NO_ALPHA, Definition, EmployerEmployee
from sfumato.statistics.cube.section import CubeSection
from sfumato.statistics.panel.section import renamed_end
from sfumato.statistics.registry import is_keyed
from sfumato.statistics.table import Table, classes_of


class Budget(Described):
    """What all releases about one population and period may spend together."""

    alpha: Exact = Field(
        description="sizes of an establishment within a factor 1 + alpha are hard to tell apart; may be left out under "
        'definition = "individuals", where it plays no part'
    )
    epsilon: Exact = Field(description="how far the log-odds of any secret may move in all; the tables add up to it")
    delta: Exact = Field(
        Fraction(0), description="probability with which the bound may fail; smooth-laplace and cubes need one"
    )
    definition: Definition = Field(
        "strong",
        description="strong hides an establishment's size from every reader; weak, which tables with worker attributes "
        "need, from readers who do not know the attributes of its workers; individuals hides single jobs, or people",
    )
    conditional: bool = Field(
        False,
        description="whether tables may spend it that are not differentially private, such as those of mose: what "
        "they cost holds only on a condition, which the privacy statement names",
    )

    @model_validator(mode="before")
    @classmethod
    def _individuals_need_no_alpha(cls, budget: Any) -> Any:
        if isinstance(budget, dict) and budget.get("definition") == "individuals":
            return {"alpha": NO_ALPHA, **budget}
        return budget

    @field_validator("alpha", "epsilon")
    @classmethod
    def _is_positive(cls, value: Fraction) -> Fraction:
        if value <= 0:
            raise ValueError("a number above 0 is needed")
        return value

    def guarantee(self) -> EmployerEmployee:
        """The guarantee that holds for everything published within this budget."""
        return EmployerEmployee(
            definition=self.definition,
            alpha=self.alpha,
            epsilon=self.epsilon,
            delta=self.delta,
            condition=CONDITIONAL if self.conditional else "",
        )


class About(Described):
    """The `[release]` section."""

    title: str = Field(description="heading of the bundle")
    population: str = Field("jobs", description="whose privacy is spent: one budget for each population and period")
    period: str = Field(description="the reference period of the data, such as 2025 or 2025-Q3")
    budget: Budget | None = Field(
        None,
        description="what all tables about the population and period may cost together; needed by every method with a "
        "formal guarantee",
    )
    key: Path | None = Field(
        None, description="key file (`sfumato keys new`) of noise-infusion, top-contributors and perturbed-values"
    )
    key_fingerprint: str | None = Field(
        None, description="an earlier key of the key file; without it, the one in force (`sfumato keys show`)"
    )
    rekeyed: bool = Field(
        False, description="publish tables under a new key that were published under another, because that one leaked"
    )
    ledger: Path = Field(Path("ledger.sqlite"), description="file that keeps the budget; answers go beside it")
    bundle: Path = Field(Path("bundle"), description="folder to publish into")
    reconcile: bool = Field(
        False,
        description="make tables about the same jobs agree where they share margins, at no cost; see docs/adjust.md",
    )

    @field_validator("ledger", "bundle")
    @classmethod
    def _names_something(cls, path: Path) -> Path:
        if path.name in ("", "..") or path.suffix == ".store":
            raise ValueError("the name of a file or folder is needed, not ending in .store")
        return path

    @field_validator("title", "population", "period")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("a text that is not empty is needed")
        return value.strip()


class LiveSettings(Described):
    """The `[live]` section: how ad-hoc tables over records are answered."""

    guard: Literal["refuse", "flag", "off"] = Field(
        "refuse",
        description="what is done to a cell that differs by few units, or by none, from a cell answered before",
    )
    most_cells: int = Field(100_000, ge=1, description="larger tables are refused")
    most_seconds: int = Field(60, ge=1, description="a question that takes the engine longer is stopped")
    most_memory: int | None = Field(
        None,
        ge=1,
        description="gigabytes that the engine may use, the data in memory included; its own limit if not given",
    )
    budget: Exact | None = Field(
        None,
        gt=0,
        description="the epsilon that all ad-hoc counts of jobs, or of records in a release without a key, may cost "
        "together, within the budget of the release; without it, none are answered",
    )
    most_epsilon: Exact | None = Field(
        None, gt=0, description="the largest epsilon of one ad-hoc count; without it, all that is left"
    )
    least_epsilon: Exact = Field(
        Fraction(1, 100),
        gt=0,
        description="the least epsilon of one ad-hoc count: smaller ones are too noisy to use, and fill the ledger",
    )
    establishments: bool | None = Field(
        None,
        description="whether ad-hoc counts of jobs tell the number of establishments of each cell, and list only cells "
        "with one; if not given, they do unless every table of the release says establishments = false",
    )
    largest_weight: int | None = Field(
        None,
        ge=1,
        description="for ad-hoc counts of records with weights that cost something: no record may weigh more, and the "
        "noise hides one that does",
    )
    quota: Exact | None = Field(
        None,
        gt=0,
        description="the epsilon that the ad-hoc counts of one analyst may cost together, whoever asked the same "
        "before; half of the budget for them when not given",
    )


OF_JOBS, OF_RECORDS = "data of jobs", "data of records"


def _kind_of_data(data: Any) -> str:
    records = "records" in data if isinstance(data, dict) else not data.of_jobs
    return OF_RECORDS if records else OF_JOBS


class Release(Described):
    """Everything a release file says."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    about: About = Field(alias="release", description="what the release is called, and its budget")
    data: Annotated[
        Annotated[Frame, Tag(OF_JOBS)] | Annotated[Microdata, Tag(OF_RECORDS)], Discriminator(_kind_of_data)
    ] = Field(description="where the confidential data are, and what they mean")
    tables: tuple[Table, ...] = Field((), alias="table", description="the tables to publish, in order")
    cubes: tuple[CubeSection, ...] = Field((), alias="cube", description="the cubes of records to publish, in order")
    live: LiveSettings = Field(
        default_factory=lambda: LiveSettings.model_validate({}),
        description="how ad-hoc tables over records are answered",
    )
    folder: Path = Field(Path(), exclude=True, description="paths are relative to the folder of the release file")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not (self.tables or self.cubes):
            raise ValueError("the key 'table' or, for records, 'cube': something to publish")
        names = [table.name for table in self.tables] + [cube.name for cube in self.cubes]
        repeated = [name for name, times in Counter(names).items() if times > 1]
        if repeated:
            raise ValueError(f"two {'cubes or tables' if self.cubes else 'tables'} are called '{repeated[0]}'")
        self._keep_apart()
        for cube in self.cubes:
            self._know_cube(cube)
        for table in self.tables:
            self.know_attributes(table)
            if not self.data.of_jobs and not is_keyed(table.protect.method):
                named = (*table.by, *table.where, *classes_of(table, self.records))
                self.records.need_codes(f"table '{table.name}'", named)
            if not is_keyed(table.protect.method) and self.about.budget is None:
                raise ReleaseError(
                    f"table '{table.name}', method '{table.protect.method}'",
                    expected="a budget, which this method spends",
                    found="none",
                    do="state one under [release], such as budget = { alpha = 0.1, epsilon = 4 }",
                )
            if is_keyed(table.protect.method) and self.about.key is None:
                raise ReleaseError(
                    f"table '{table.name}', method '{table.protect.method}'",
                    expected="a key file, from which its factors are computed",
                    found="none",
                    do='make one with `sfumato keys new sfumato.key` and write key = "sfumato.key" under [release]',
                )
        return self

    def _know_cube(self, cube: CubeSection) -> None:
        if self.data.of_jobs:
            raise ReleaseError(
                f"cube '{cube.name}'",
                expected="a table of records: records = { … } under [data]",
                found="jobs",
                do="describe the records under [data], or publish tables",
            )
        data = self.records
        cube.know(data)
        data.need_codes(f"cube '{cube.name}'", cube.by)
        clipped = [name for name in cube.measures if data.measures[name].outside == "clip"]
        if data.records.period is not None or clipped:
            raise ReleaseError(
                f"cube '{cube.name}'",
                expected="records that are one a unit, and measures that are not clipped",
                found="a `period` in [data.records]" if not clipped else f"'{clipped[0]}' with outside = \"clip\"",
                do="leave it out, or publish tables",
            )
        if self.about.budget is None:
            raise ReleaseError(
                f"cube '{cube.name}'",
                expected="a budget, which the noise of a cube spends",
                found="none",
                do="state one under [release], such as budget = { alpha = 1, epsilon = 4, delta = 1e-5, definition = "
                '"individuals" }',
            )

    def know_attributes(self, table: Table) -> None:
        """Refuse a table by attributes that the data do not have."""
        known = [*self.data.attributes, *filter(None, [self.period])]
        of_ends = table.end_filters(self.data.attributes)
        for name in (*table.by, *table.where, *table.ends):
            if name not in known and name not in of_ends:
                close = get_close_matches(name, known, n=1)
                meant = f"did you mean '{close[0]}'?" if close else "describe it under [data.attributes]"
                raise ReleaseError(
                    f"table '{table.name}'",
                    expected=f"an attribute: {', '.join(known)}",
                    found=f"'{name}'",
                    do=renamed_end(table.flow or table.graph, name, self.data) or meant,
                )

    def _keep_apart(self) -> None:
        """Refuse a bundle folder that holds anything else of the release: publishing replaces that folder."""
        codelists = [str(a.codelist) for a in self.data.attributes.values() if a.codelist is not None]
        maps = [str(a.map.path) for a in self.data.attributes.values() if a.map is not None]
        totals = [str(c.totals) for cube in self.cubes for c in cube.controls if c.totals is not None]
        kept = [self.folder, self.ledger, self.store, *([] if self.key is None else [self.key])]
        sources = [path for path in self.data.sources().values() if not is_stored(path)]
        inside = [*kept, *(local_path(self.data.folder, path) for path in (*sources, *codelists, *maps, *totals))]
        for path in (path.resolve() for path in inside):
            if path.is_relative_to(self.bundle):
                raise ReleaseError(
                    f"bundle folder {self.bundle}",
                    expected="a folder of its own, which publishing may replace",
                    found=f"a folder that holds {path.name}",
                    do="choose another folder: `bundle = …` under [release]",
                )
        if self.bundle.is_relative_to(self.store.resolve()):
            raise ReleaseError(
                f"bundle folder {self.bundle}",
                expected="a folder outside the confidential store of answers",
                found=str(self.store),
                do="choose another folder: `bundle = …` under [release]",
            )

    @property
    def account(self) -> Account:
        """The account in the ledger that this release is charged to."""
        return Account(population=self.about.population, period=self.about.period)

    @property
    def budget(self) -> EmployerEmployee | None:
        """What the account may spend, if anything of this release costs."""
        return None if self.about.budget is None else self.about.budget.guarantee()

    @property
    def live_tells_establishments(self) -> bool:
        """Whether ad-hoc counts of jobs tell where there are establishments: as the tables do, unless it is said.

        Joined tables of jobs never do: they have no establishments without jobs.
        """
        said = self.live.establishments
        if self.data.joined:
            return False
        return any(table.establishments for table in self.tables) if said is None else said

    @property
    def ledger(self) -> Path:
        """The path of the ledger."""
        return self.folder / self.about.ledger

    @property
    def bundle(self) -> Path:
        """The folder the bundle is published into; through a symbolic link, the folder it leads to."""
        return (self.folder / self.about.bundle).resolve()

    @property
    def store(self) -> Path:
        """The folder beside the ledger that keeps answers and what is known about files."""
        return store_of(self.ledger)

    @property
    def key(self) -> Path | None:
        """The path of the key file."""
        return None if self.about.key is None else self.folder / self.about.key

    @property
    def period(self) -> str | None:
        """The column with the period of a panel."""
        return self.data.panel_period

    @property
    def time(self) -> str | None:
        """The column with the period, of a panel or of records."""
        return self.data.time

    @property
    def frame(self) -> Frame:
        """The description of jobs; a release of records has none."""
        return self.data.as_jobs()

    @property
    def records(self) -> Microdata:
        """The description of records; a release of jobs has none."""
        return self.data.as_records()

    def secret(self) -> Secret | None:
        """The key in force, when a table needs one."""
        keyed = any(is_keyed(table.protect.method) for table in self.tables)
        return read_key(self.key, fingerprint=self.about.key_fingerprint) if keyed and self.key is not None else None


# Read a release file; every mistake is reported with its line.

Location = tuple[int | str, ...]


def load(path: str | Path) -> Release:
    """Read and check a release file; nothing but the file itself is opened."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ReleaseError(
            str(path),
            expected="a release file (TOML, in UTF-8)",
            found=str(error),
            do="check the path; `sfumato economy` writes an example",
        ) from error
    try:
        # Decimals, so that 0.1 means one tenth and not the nearest binary fraction.
        content = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ReleaseError(
            str(path), expected="a file in TOML", found=str(error), do="mend the line named above"
        ) from error
    folder = path.resolve().parent
    for section in (content, content.get("data")):
        if isinstance(section, dict) and "folder" in section:  # set here, never by the file
            raise ReleaseError(
                str(path),
                expected="a key that exists",
                found="'folder'",
                do="remove it: paths are relative to this file",
            )
    if isinstance(content.get("data"), dict):
        content["data"]["folder"] = folder
    try:
        return Release(**content, folder=folder)
    except ValidationError as error:
        raise _explained(path, text, error) from error


def _explained(path: Path, text: str, error: ValidationError) -> ReleaseError:
    """Turn the first mistake into an error that names the line, the expectation and the remedy."""
    # A misspelt key is also a missing one; the former is what the writer has to see.
    first = min(error.errors(), key=lambda mistake: mistake["type"] != "extra_forbidden")
    location = tuple(step for step in first["loc"] if step not in (OF_JOBS, OF_RECORDS))
    named = ", ".join(f"number {step + 1}" if isinstance(step, int) else step for step in location)
    where = f"{path}, line {line_of(text, location)}: {named or 'the file'}"
    if first["type"] == "extra_forbidden":
        known = _known_keys(first["loc"])
        close = difflib.get_close_matches(str(location[-1]), known, n=1)
        return ReleaseError(
            where,
            expected=f"one of the keys {', '.join(known)}",
            found=f"'{location[-1]}'",
            do=f"did you mean '{close[0]}'?" if close else "remove the key",
        )
    if first["type"] == "missing":
        return ReleaseError(
            where,
            expected=f"the key '{location[-1]}'",
            found="none",
            do=f"add '{location[-1]}' to this section",
        )
    found = first["input"]
    shown = "an unsuitable value" if isinstance(found, dict | list | tuple | BaseModel) else repr(found)
    if isinstance(found, Decimal):
        shown = str(found)
    return ReleaseError(
        where,
        expected=first["msg"].removeprefix("Value error, ").removeprefix("Input should be "),
        found=shown if location else "sections that do not fit together",
        do="correct the value; docs/release-file.md lists every key",
    )


def _known_keys(location: Location) -> list[str]:
    """The keys allowed in the section a location points into."""
    kind: Any = Release
    for step in location[:-1]:
        if step in (OF_JOBS, OF_RECORDS):
            kind = Frame if step == OF_JOBS else Microdata
        elif _is_section(kind):
            fields = {field.alias or name: field for name, field in kind.model_fields.items()}
            kind = fields[str(step)].annotation if str(step) in fields else None
        else:  # a table of named sections, or one of several
            kind = next(filter(_is_section, get_args(kind)), None)
        if get_origin(kind) is UnionType:
            kind = next(filter(_is_section, get_args(kind)), None)
    return [f.alias or name for name, f in kind.model_fields.items() if name != "folder"] if _is_section(kind) else []


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def line_of(text: str, location: Location) -> int:
    """The line of a TOML text where a location is, or where the section that should hold it begins.

    >>> line_of("[release]\\ntitle = 'x'\\n[[table]]\\nname = 'a'", ("table", 0, "name"))
    4
    """
    best, best_depth = 1, 0
    seen: dict[str, int] = {}
    section: Location = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*(\[\[?)\s*([^\]]+?)\s*\]", line):
            names = tuple(part.strip(" \"'") for part in header[2].split("."))
            section = names
            if header[1] == "[[":
                seen[header[2]] = seen.get(header[2], -1) + 1
                section = (*names, seen[header[2]])
            here = section
        elif key := re.match(r"\s*([\w.\"'-]+)\s*=", line):
            here = (*section, *(part.strip(" \"'") for part in key[1].split(".")))
        else:
            continue
        if len(here) > best_depth and location[: len(here)] == here:
            best, best_depth = number, len(here)
    return best
