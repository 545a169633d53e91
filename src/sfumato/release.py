"""A release: what is published, from which data, with which protection and budget; read from a file."""

from collections import Counter
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, field_validator, model_validator

from sfumato.description import Described, Location, line_of, mistake
from sfumato.engine.data_files import is_stored, local_path
from sfumato.errors import ReleaseError
from sfumato.frame.data import Frame
from sfumato.frame.levels import UnknownLevel, asked_in, with_asked_levels
from sfumato.frame.measured import jobs_of
from sfumato.frame.records import Microdata
from sfumato.frame.series import panel_column
from sfumato.keys import Secret, read_key
from sfumato.privacy.account import Account
from sfumato.privacy.entries import store_of
from sfumato.privacy.guarantee import Caps, EmployerEmployee
from sfumato.privacy.windows import Window
from sfumato.sections import About, LiveSettings, Series, content_of_period
from sfumato.statistics.cube.section import CubeSection
from sfumato.statistics.fitting import classes_of
from sfumato.statistics.panel.section import renamed_end
from sfumato.statistics.registry import is_free
from sfumato.statistics.table import AT_A_PERIOD, Table
from sfumato.toml import read_toml

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
    series: Series | None = Field(None, description="the periods of a release file that is for many")
    live: LiveSettings = Field(
        default_factory=lambda: LiveSettings.model_validate({}),
        description="how ad-hoc tables over records are answered",
    )
    folder: Path = Field(Path(), exclude=True, description="paths are relative to the folder of the release file")

    @model_validator(mode="before")
    @classmethod
    def _describes_levels(cls, content: Any) -> Any:
        if not isinstance(content, dict) or "data" not in content:
            return content
        return {**content, "data": with_asked_levels(content["data"], content.get("table"))}

    @field_validator("tables")
    @classmethod
    def _has_each_level(cls, tables: tuple[Table, ...]) -> tuple[Table, ...]:
        return tuple(one for table in tables for one in table.each_level())

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not (self.tables or self.cubes):
            raise ValueError("the key 'table' or, for records, 'cube': something to publish")
        names = [table.name for table in self.tables] + [cube.name for cube in self.cubes]
        repeated = [name for name, times in Counter(names).items() if times > 1]
        if repeated:
            raise ValueError(f"two {'cubes or tables' if self.cubes else 'tables'} are called '{repeated[0]}'")
        self._keep_apart()
        self._has_one_time()
        self._has_a_place_in_time()
        self._know_totals()
        for cube in self.cubes:
            self._know_cube(cube)
        for table in self.tables:
            self.know_attributes(table)
            if not self.data.of_jobs and not is_free(table.protect.method):
                named = (*table.by, *table.where, *classes_of(table, self.records))
                self.records.need_codes(f"table '{table.name}'", named)
            if not is_free(table.protect.method) and self.about.budget is None:
                raise ReleaseError(
                    f"table '{table.name}', method '{table.protect.method}'",
                    expected="a budget, which this method spends",
                    found="none",
                    do="state one under [release], such as budget = { alpha = 0.1, epsilon = 4 }",
                )
            units = table.protect.options.get("protects") == "unit"
            if table.protect.needs_key and self.about.key is None:
                raise ReleaseError(
                    f"table '{table.name}', method '{table.protect.method}'",
                    expected="a key file, by which the records of a unit are chosen that are counted"
                    if units
                    else "a key file, from which its factors are computed",
                    found="none",
                    do='make one with `sfumato keys new sfumato.key` and write key = "sfumato.key" under [release]',
                )
        return self

    def _know_totals(self) -> None:
        """Refuse a budget for totals that nothing limits, and for populations that there are none of."""
        own = self.data.of_jobs and self.data.span is not None and self.frame.jobs.population
        listed = () if self.about.budget is None else self.about.budget.populations
        if listed and own not in listed:
            raise ReleaseError(
                "budget, populations",
                expected=f'"{own}" among them, the population of the jobs' if own else "a panel, which has populations",
                found=", ".join(listed) if own else "data that are none",
                do="add it" if own else "leave out `populations`",
            )
        for name in () if self.about.budget is None else self.about.budget.totals:
            measure, limit = self.data.measures.get(name), self._limit
            if measure is None or getattr(measure, limit) is None:
                whose = "a job counts for at most" if self.data.of_jobs else "a unit is hidden whole up to"
                raise ReleaseError(
                    f"budget, totals '{name}'",
                    expected=f"a measure with a `{limit}`, the amount that {whose} in totals",
                    found="no measure of this name" if measure is None else f"a measure without a `{limit}`",
                    do=f"write {name} = {{ {limit} = 120000 }}, say, in [data.measures], or leave it out of `totals`",
                )
        self._know_definition()

    def _know_definition(self) -> None:
        """Refuse a budget for units of jobs, and one for totals of records that is not for units."""
        budget = self.about.budget
        if budget is None:
            return
        definitions = [budget.definition, *([] if budget.window is None else [budget.window.definition])]
        units = [(definition or budget.definition) == "units" for definition in definitions]
        if any(units) if self.data.of_jobs else any(units) != bool(budget.totals) or any(units) != all(units):
            raise ReleaseError(
                "budget, definition",
                expected='"strong", "weak" or "individuals" for jobs'
                if self.data.of_jobs
                else 'definition = "units" together with `totals`, the measures of records that may spend it, in the '
                "budget and in its window",
                found=f'definition = "{budget.definition}"'
                + (f" with totals of {', '.join(budget.totals)}" if budget.totals else " without `totals`"),
                do='leave `definition` out, or write "strong"'
                if self.data.of_jobs
                else 'write budget = { definition = "units", alpha = 0.1, epsilon = 4, totals = ["turnover"] }, say; '
                "for counts, cubes and statistics of people leave `totals` out",
            )

    @property
    def _limit(self) -> str:
        """What limits totals of a measure: of jobs its cap, of records its floor."""
        return "cap" if self.data.of_jobs else "floor"

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
        data.need_single_records(
            f"cube '{cube.name}'", instead="publish tables by the method top-contributors", but=["levels"]
        )
        if cube.protects == "unit" and self.about.key is None:
            raise ReleaseError(
                f"cube '{cube.name}', protects",
                expected="a key file, by which the records of a unit are chosen that are counted",
                found="none",
                do='make one with `sfumato keys new sfumato.key` and write key = "sfumato.key" under [release]',
            )
        if self.about.budget is None:
            raise ReleaseError(
                f"cube '{cube.name}'",
                expected="a budget, which the noise of a cube spends",
                found="none",
                do="state one under [release], such as budget = { alpha = 1, epsilon = 4, delta = 1e-5, definition = "
                '"individuals" }',
            )

    def _has_one_time(self) -> None:
        """Refuse a series of data that have a time dimension of their own."""
        if self.series is None:
            return
        others = [one.name for one in self.tables if one.statistic not in AT_A_PERIOD or is_free(one.protect.method)]
        if self.data.span is not None and (others or self.series.column):
            raise ReleaseError(
                "[series]",
                expected="of a panel, counts, totals and means of jobs with a guarantee, each about the period that is "
                "run, and no `column`: `period` under [data.jobs] names it",
                found=f"the table{'s' if len(others) > 1 else ''} {', '.join(others)}" if others else "`column`",
                do="publish indicators, flows and graphs of all periods by one run, without [series]"
                if others
                else "leave out `column`",
            )
        if self.data.time is not None and self.data.span is None:
            raise ReleaseError(
                "[series]",
                expected="data of one period at a time",
                found=f"a `period` under [data], the column '{self.data.time}', which makes a time dimension by itself",
                do="leave out [series] and publish all periods by one run, or leave out `period` under [data]; "
                "`column` under [series] reads the rows of one period only",
            )
        if self.series.name in (*self.data.attributes, *self.data.measures):
            raise ReleaseError(
                "[series]",
                expected="a name for the time dimension that no attribute or measure has",
                found=f"'{self.series.name}'",
                do='give another: dimension = "period" under [series]',
            )

    def _has_a_place_in_time(self) -> None:
        """Refuse a window of periods whose number is not known, and one of another length than the period."""
        if self.about.budget is None or self.about.budget.window is None:
            return
        if self.time is not None:
            raise ReleaseError(
                "[release] budget, window",
                expected="data of one period at a time",
                found=f"a `period` under [data], the column '{self.time}': one run publishes all periods, and one "
                "budget bounds what they reveal together",
                do="leave the window out, or publish the periods as a [series]",
            )
        _ = self.window  # refuses what is no year, quarter or month

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
                    expected=f"an attribute: {', '.join(known) or 'none is described'}",
                    found=f"'{name}'",
                    do=renamed_end(table.flow or table.graph, name, self.data) or meant,
                )

    def _keep_apart(self) -> None:
        """Refuse a bundle folder that holds anything else of the release: publishing replaces that folder."""
        codelists = [str(a.codelist.file) for a in self.data.attributes.values() if a.codelist is not None]
        maps = [str(a.map.path) for a in self.data.attributes.values() if a.map is not None]
        totals = [str(c.totals) for cube in self.cubes for c in cube.controls if c.totals is not None]
        kept = [self.folder, self.ledger, self.store, *([] if self.key is None else [self.key])]
        sources = [source.path for source in self.data.sources().values() if not is_stored(source.path)]
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
        budget = self.about.budget
        return None if budget is None else budget.guarantee(self._caps, self._panel_caps)

    @property
    def window(self) -> Window | None:
        """What consecutive periods of the population may spend together, if the release states it."""
        budget = self.about.budget
        return None if budget is None else budget.window_of(self.about.period, self._caps, self._panel_caps)

    @property
    def _caps(self) -> dict[str, tuple[str, int]]:
        """The most of each measure that one job adds to totals, or its floor, with what makes its values.

        Of a panel a measure has one for each population: `_panel_caps`.
        """
        capped = {} if self.data.span is not None else self._limits
        return {name: (self.data.measured(name), cap) for name, cap in capped.items()}

    @property
    def _limits(self) -> dict[str, int]:
        """The caps of all measures that have one, or their floors."""
        found = {name: getattr(one, self._limit) for name, one in self.data.measures.items()}
        return {name: cap for name, cap in found.items() if cap is not None}

    @property
    def _panel_caps(self) -> Caps:
        """What limits steps of a panel: the numbers of jobs of the populations that are counted, and their totals."""
        budget = self.about.budget
        if budget is None or self.data.span is None:
            return ()
        counted = any(table.statistic in AT_A_PERIOD for table in self.tables) or self.live.budget is not None
        found = dict.fromkeys(budget.populations or ((self.frame.jobs.population,) if counted else ()))
        if any(table.statistic == "indicators" and not is_free(table.protect.method) for table in self.tables):
            found["any"] = None  # indicators are about all jobs of a period
        caps = [(jobs_of(population), 1) for population in found if population != "any"]
        for name in budget.totals:
            caps += [(self.frame.measured(name, population), self._limits[name]) for population in found]
        return tuple(caps)

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
    def confidential(self) -> Path:
        """The folder beside the bundle for reports on it; each period of a series has its own."""
        beside = self.bundle.with_name(f"{self.bundle.name}-confidential")
        return beside if self.series is None else beside / self.about.period

    @property
    def period(self) -> str | None:
        """The column with the period of a panel."""
        return self.data.panel_period

    @property
    def time(self) -> str | None:
        """The column with the period, of a panel or of records; none where each period of a series is by itself."""
        return None if self.series is not None else self.data.time

    @property
    def frame(self) -> Frame:
        """The description of jobs; a release of records has none."""
        return self.data.as_jobs()

    @property
    def records(self) -> Microdata:
        """The description of records; a release of jobs has none."""
        return self.data.as_records()

    def secret(self) -> Secret | None:
        """The key in force, when a table or a cube needs one."""
        keyed = any(table.protect.needs_key for table in self.tables)
        keyed = keyed or any(cube.protects == "unit" for cube in self.cubes)
        return read_key(self.key, fingerprint=self.about.key_fingerprint) if keyed and self.key is not None else None


# Read a release file; every mistake is reported with its line.


def load(path: str | Path, period: str | None = None) -> Release:
    """Read and check a release file, of a series for one of its periods; nothing but the file itself is opened.

    >>> load("release.toml", period="2026Q3")  # doctest: +SKIP
    """
    path, text, content = _read(path)
    folder = path.resolve().parent
    if "series" in content:
        try:
            content = content_of_period(path, text, content, period)
        except ValidationError as error:
            raise _explained(path, text, error, within=("series",)) from error
    elif period is not None:
        raise ReleaseError(
            f"--period {period}",
            expected="a release file for many periods, which has a section [series]",
            found=f"{path}, which is about one",
            do='leave the period out, or add [series] with first = "2026-Q1", say; see docs/series.md',
        )
    for section in (content, content.get("data")):
        set_here = [key for key in ("folder", "only") if isinstance(section, dict) and key in section]
        if set_here:  # set here, never by the file
            raise ReleaseError(
                str(path),
                expected="a key that exists",
                found=f"'{set_here[0]}'",
                do="remove it: paths are relative to this file" if set_here == ["folder"] else "remove it",
            )
    if isinstance(content.get("data"), dict):
        content["data"]["folder"] = folder
        series = content.get("series")
        column = None if series is None else series.column or panel_column(content["data"])
        if column:
            content["data"]["only"] = {"column": column, "period": content["release"]["period"]}
    try:
        return Release(**content, folder=folder)
    except ValidationError as error:
        raise _unknown_level(path, text, content, error) or _explained(path, text, error) from error


def load_any_period(path: str | Path) -> Release:
    """The same of a series whatever its period: for what all periods share, such as the ledger and the bundle."""
    _, _, content = _read(path)
    series = content.get("series")
    return load(path, str(series.get("first", "")) if isinstance(series, dict) else None)


def _read(path: str | Path) -> tuple[Path, str, dict[str, Any]]:
    path = Path(path)
    text, content = read_toml(path)
    return path, text, content


def _unknown_level(path: Path, text: str, content: dict[str, Any], error: ValidationError) -> ReleaseError | None:
    """That the first mistake is a level which no attribute has, by the table that asks for it or its description."""
    unknown = error.errors()[0].get("ctx", {}).get("error")
    if not isinstance(unknown, UnknownLevel):
        return None
    asked = asked_in(content.get("table"), unknown.name)
    if asked is None:
        where = f"{path}, line {line_of(text, ('data', 'attributes', unknown.name))}: data.attributes"
    else:
        number, key = asked
        table = content["table"][number].get("name", f"number {number + 1}")
        where = f"{path}, line {line_of(text, ('table', number, key))}: table '{table}', {key}"
    return ReleaseError(where, expected=unknown.expected, found=unknown.found, do=unknown.do)


def _explained(path: Path, text: str, error: ValidationError, within: Location = ()) -> ReleaseError:
    """The first mistake in a file, by its line."""
    variants: dict[str, type[BaseModel]] = {OF_JOBS: Frame, OF_RECORDS: Microdata}
    return mistake(path, text, error, file=Release, variants=variants, within=within)
