"""The bundle of a series: one folder whose tables have a time dimension, and in it every version of every period.

Each version is a whole bundle in `periods/`, and no file of it is ever written again. Beside them lies what describes
them as one: tables over all periods, codes of all periods, a statement of what several periods reveal together.
"""

import csv
import io
import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.bundle.manifest import MANIFEST, read_listed
from sfumato.bundle.rows import files_of
from sfumato.bundle.versions import SeriesBundle, Version, revision, revision_in_words
from sfumato.bundle.write import codelist_text, drafted, refuse_foreign, today, write_draft, write_file, write_manifest
from sfumato.durable import sync_folder
from sfumato.engine.chunks import EachFile, side_by_side
from sfumato.frame.codelists import Codelist
from sfumato.frame.series import titled
from sfumato.plan import Plan
from sfumato.privacy.account import parallel
from sfumato.privacy.book import OverPeriods
from sfumato.privacy.guarantee import NoFormalGuarantee, at_most, read_described

Files = dict[str, dict[str, Any]]
"""What a manifest lists."""


def write_series(
    plan: Plan,
    answers: Mapping[str, Any],
    charges: Mapping[str, str],
    folder: Path,
    *,
    each_file: EachFile = side_by_side,
    spent: OverPeriods | None = None,
    reason: str = "",
) -> tuple[Version, bool]:
    """Publish stored answers as the next version of their period, unless another run just did; all earlier ones stay.

    The version is returned, and whether it is new.

    `charges` and `spent` are what the ledger tells, as of any bundle, and `reason` says why a period is revised.
    """
    refuse_foreign(folder)
    with drafted(folder) as draft:
        before = SeriesBundle.open(folder)
        period = plan.release.about.period
        newest = before.newest(period)
        if newest is not None and before.same_as_published(newest, plan, charges):
            _link(folder, draft)  # another run was faster: the same folder again
            return newest, False
        version = Version(
            period=period,
            number=1 if newest is None else newest.number + 1,
            published=today(),
            reason=reason,
        )
        files = {name: entry for name, entry in _listed(folder).items() if name.startswith("periods/")}
        for name in files:
            _link(folder / name, draft / name)
        files |= _write_version(plan, answers, charges, draft, version, each_file=each_file, spent=spent)
        if newest is not None:
            same = before.charges(newest).items() & charges.items()
            unchanged = frozenset(name for name, _ in same)
            changes = revision(folder / newest.folder, draft / version.folder, unchanged)
            version = replace(version, changes=changes)
        name = plan.release.series.name if plan.release.series else before.dimension
        after = SeriesBundle(folder=draft, dimension=name, versions=(*before.versions, version))
        _describe(after, plan, files)
    return version, True


def _write_version(
    plan: Plan,
    answers: Mapping[str, Any],
    charges: Mapping[str, str],
    draft: Path,
    version: Version,
    *,
    each_file: EachFile,
    spent: OverPeriods | None,
) -> Files:
    """Write the bundle of one version, and say what the manifest of the series has to list."""
    own = draft / version.folder
    own.mkdir(parents=True)
    manifest = write_draft(plan, answers, charges, own, each_file=each_file, spent=spent)
    entry = write_file(own, MANIFEST, (own / MANIFEST).read_bytes())
    return {f"{version.folder}/{name}": one for name, one in {**manifest["files"], MANIFEST: entry}.items()}


def _link(there: Path, here: Path) -> None:
    """A file, or all files of a folder, under another name too; copies where the disk has no such thing."""
    if there.is_dir():
        for path in sorted(there.iterdir()):
            _link(path, here / path.name)
        return
    here.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(there, here)
    except OSError:
        shutil.copy2(there, here)


def _listed(folder: Path) -> Files:
    path = folder / MANIFEST
    found: Files = json.loads(path.read_text(encoding="utf-8"))["files"] if path.is_file() else {}
    return found


# What describes all versions as one.


def _describe(series: SeriesBundle, plan: Plan, files: Files) -> None:
    """Write what describes a series beside its versions: codelists, maps, structure, statement and manifest."""
    draft, current = series.folder, series.current
    title = titled(plan.release.series.title if plan.release.series else "", current[0].period, current[-1].period)
    codelists = {series.dimension: Codelist.of([version.period for version in current])} | _codelists(series)
    contents = {f"codelists/{name}.csv": codelist_text(codelist) for name, codelist in codelists.items()}
    newest = draft / current[-1].folder
    contents |= {f"maps/{path.name}": path.read_bytes() for path in sorted((newest / "maps").glob("*.geojson"))}
    structure = _structure(series, title, codelists)
    contents["structure.json"] = json.dumps(structure, indent=2, ensure_ascii=False).encode() + b"\n"
    contents["statement.md"] = _statement(series, title, plan.software).encode()
    for name, content in contents.items():
        (draft / name).parent.mkdir(exist_ok=True)
        files[name] = write_file(draft, name, content)
    versions = [version.described() for version in series.versions]
    paid = {
        f"{version.name}/{table}": charge
        for version in series.versions
        for table, charge in series.charges(version).items()
    }
    manifest = {
        "software": f"sfumato {plan.software}",
        "title": title,
        "published": max(version.published for version in series.versions),
        "series": {"dimension": series.dimension, "versions": versions},
        "charges": paid,
        "files": {name: files[name] for name in sorted(files)},
    }
    for path in draft.rglob("*"):
        if path.is_dir():
            sync_folder(path)  # the names of linked files, too, before the draft takes the place of the series
    write_manifest(draft, manifest)


def _codelists(series: SeriesBundle) -> dict[str, Codelist]:
    """The codes of all periods of every codelist: in the order and with the labels of the newest that has them."""
    found: dict[str, dict[str, str]] = {}
    for version in reversed(series.current):
        for name, labels in _labels(series, version).items():
            if name != series.dimension:
                for code, label in labels.items():
                    found.setdefault(name, {}).setdefault(code, label)
    return {name: Codelist(codes=tuple(labels), labels=tuple(labels.values())) for name, labels in found.items()}


def _labels(series: SeriesBundle, version: Version) -> dict[str, dict[str, str]]:
    """The labels of all codes of a version, by the name of the codelist."""
    found = {}
    for path in sorted((series.folder / version.folder / "codelists").glob("*.csv")):
        lines = io.StringIO(path.read_text(encoding="utf-8"), newline="")
        found[path.stem] = {row["code"]: row["label"] for row in csv.DictReader(lines)}
    return found


def _structure(series: SeriesBundle, title: str, codelists: Mapping[str, Codelist]) -> dict[str, Any]:
    current, last = series.current, series.structure(series.versions[-1])
    labels = {version.name: _labels(series, version) for version in current}
    named = [about["name"] for version in reversed(current) for about in series.structure(version)["tables"]]
    distinct = dict.fromkeys(
        text for version in reversed(current) for text in series.structure(version)["statement"]["not_protected"]
    )
    errors = dict.fromkeys(
        text for version in reversed(current) for text in series.structure(version)["statement"]["errors"]
    )
    newest = series.versions[-1]
    alone = f"What follows is said of version {newest.number} of {newest.period} alone."
    return {
        "title": title,
        "population": last["population"],
        "period": _span([version.period for version in current]),
        "guarantee": _guarantee(series.spent()),
        "statement": {
            "promises": [*_in_short(series), alone, *last["statement"]["promises"]],
            "not_protected": list(distinct),
            "errors": list(errors),
        },
        "comparisons": [],
        **({"over_periods": last["over_periods"]} if "over_periods" in last else {}),
        "series": {"dimension": series.dimension, "versions": [version.described() for version in series.versions]},
        "tables": [_table(series, name, labels, codelists) for name in dict.fromkeys(named)],
        **({"cubes": cubes} if (cubes := [*_cubes(series)]) else {}),
        **({"hierarchies": found} if (found := _hierarchies(series)) else {}),
    }


def _hierarchies(series: SeriesBundle) -> list[dict[str, Any]]:
    """Where the codes of dimensions lie in others, each as the newest period that has it tells it."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for version in series.current:
        for told in series.structure(version).get("hierarchies", ()):
            before = found.get((told["dimension"], told["above"]), told)
            found[told["dimension"], told["above"]] = {**told, "parents": {**before["parents"], **told["parents"]}}
    return list(found.values())


def _table(
    series: SeriesBundle,
    name: str,
    labels: Mapping[str, Mapping[str, Mapping[str, str]]],
    codelists: Mapping[str, Codelist],
) -> dict[str, Any]:
    """A table over all periods that have it, described as the newest of them."""
    parts = {version: about for version in series.current if (about := series.table(version, name)) is not None}
    newest, about = list(parts.items())[-1]
    periods = [version.period for version in parts]
    time, *others = about["dimensions"]
    more = {d["name"]: len(codelists[d["name"]].codes) - len(labels[newest.name][d["name"]]) for d in others}
    where = about["where"] if len(periods) == len(series.current) else {**about["where"], series.dimension: periods}
    absent = {
        version.period: lacking
        for version in parts
        if (lacking := _absent(labels[version.name], codelists, [d["name"] for d in others], about["where"]))
    }
    rows = sum(part["files"].get("rows", 0) for part in parts.values())
    return {
        **about,
        "dimensions": [
            {**time, "codes": len(periods)},
            *({**dimension, "codes": dimension["codes"] + more[dimension["name"]]} for dimension in others),
        ],
        **({"workplace": [series.dimension, *about["workplace"]]} if "workplace" in about else {}),
        **({"noise": _noise(parts.values())} if "noise" in about else {}),
        "where": where,
        "columns": {column: text for part in parts.values() for column, text in part["columns"].items()},
        "guarantee": _guarantee(series.spent([name])),
        "files": {
            "parquet": [file for version, part in parts.items() for file in _parquet(version, part)],
            **({"rows": rows} if rows else {}),
        },
        **({"absent": absent} if absent else {}),
        "changes": _changes(parts),
    }


def _noise(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The noise of a table in all periods; None where it is not the same in all, and each version tells its own."""
    found = [(part["method"], part.get("noise")) for part in parts]
    return found[0][1] if all(other == found[0] for other in found) else None


def _parquet(version: Version, about: Mapping[str, Any]) -> list[str]:
    """The files of a table of one version, from the folder of the series."""
    return [f"{version.folder}/{name}" for name in files_of(about)]


def _absent(
    known: Mapping[str, Mapping[str, str]],
    codelists: Mapping[str, Codelist],
    dimensions: Sequence[str],
    where: Mapping[str, Sequence[str]],
) -> dict[str, list[str]]:
    """The codes of dimensions that a period does not know: their cells are absent, and not zero."""
    lacking = {
        name: [code for code in where.get(name, codelists[name].codes) if code not in known[name]]
        for name in dimensions
    }
    return {name: codes for name, codes in lacking.items() if codes}


def _changes(parts: Mapping[Version, Mapping[str, Any]]) -> str:
    """How the numbers were changed: as in the newest period, and in others where that was something else."""
    newest = list(parts.values())[-1]
    others: dict[str, list[str]] = {}
    for version, about in list(parts.items())[:-1]:
        if about["changes"] != newest["changes"]:
            others.setdefault(about["changes"], []).append(version.period)
    return " ".join([newest["changes"], *(f"In {', '.join(periods)}: {text}" for text, periods in others.items())])


def _cubes(series: SeriesBundle) -> Iterable[dict[str, Any]]:
    """The cubes of every period, each by itself: sums over periods would count the same records several times."""
    for version in series.current:
        for about in series.structure(version).get("cubes", ()):
            dimensions = [
                {**d, **{key: f"{version.folder}/{d[key]}" for key in ("codelist", "map") if key in d}}
                for d in about["dimensions"]
            ]
            yield {
                **about,
                "name": f"{about['name']}_{version.period.lower().replace('-', '_')}",
                "title": f"{about['title']}, {version.period}",
                "dimensions": dimensions,
                "file": f"{version.folder}/{about['file']}",
            }


# What a series promises: what one period does, and what several reveal together.


def _guarantee(spent: OverPeriods) -> dict[str, Any]:
    together = spent.together()
    if together is not None and not spent.unbounded:
        return together.described()
    return NoFormalGuarantee(statement="nothing bounds what the tables of all periods together may reveal").described()


def _in_short(series: SeriesBundle) -> list[str]:
    """What is said of all periods together."""
    current, spent = series.current, series.spent()
    periods = [version.period for version in current]
    text = (
        f"This is a series of {len(periods)} {series.dimension}{'s' if len(periods) > 1 else ''}, {_span(periods)}. "
        "Each was protected by itself, and what their tables reveal of someone, of a job or of an establishment that "
        "is in the data of several adds up."
    )
    together = spent.together()
    revised = " Versions that were replaced are counted too." if len(series.versions) > len(current) else ""
    if spent.unbounded:
        text += (
            f" Tables without a formal guarantee are among those of {', '.join(spent.unbounded)}: nothing bounds what "
            "all periods together reveal, and what differs between two versions or periods of such a table is "
            "distorted no more than the rest of it."
        )
    if together is not None:
        once = parallel([each.at(together.alpha) for each in spent.formal])
        which = "the tables with a guarantee promise" if spent.unbounded else "the tables promise"
        text += (
            f" To whoever is in one period {which} at the least: {once}. To whoever is in all {len(spent.formal)}: "
            f"{together}; in fewer, the sum of those.{revised}"
        )
    elif spent.formal:
        text += " The deltas of all periods add up to 1 or more: together they bound nothing."
    return [" ".join([text, *_limits(series)]), *_revisions(series)]


def _limits(series: SeriesBundle) -> list[str]:
    """What consecutive periods may spend together, as the version that was published last has it."""
    told = series.structure(series.versions[-1]).get("over_periods", {}).get("windows", ())
    return [
        f"Any {one['periods']} consecutive {one['length']}s"
        + (f" from {one['first']} on" if "first" in one else "")
        + f" may spend at most this together, which is what a unit in all of them may lose in total: "
        f"{read_described(one['guarantee'])}."
        for one in told
    ]


def _revisions(series: SeriesBundle) -> list[str]:
    """Which periods were revised, why, and what that changed."""
    return [
        " ".join(
            [
                f"{version.period} was revised on {version.published} (version {version.number}). Reason: "
                f"{version.reason.rstrip('.')}.",
                *revision_in_words(version.changes),
            ]
        )
        for version in series.versions
        if version.number > 1
    ]


def _statement(series: SeriesBundle, title: str, software: str) -> str:
    last = series.versions[-1]
    _, _, own = read_listed(series.folder / last.folder, "statement.md").decode().partition("\n\n")
    short, *revised = _in_short(series)
    structure = series.structure(last)
    heading = f"| {series.dimension} | version | published | definition | alpha | epsilon | delta |"
    lines = [heading, "|---|---|---|---|---|---|---|"]
    for version in sorted(series.versions, key=lambda one: (one.place, one.number)):
        guarantee = series.structure(version)["guarantee"]
        numbers = [str(guarantee.get(name, "")) for name in ("alpha", "epsilon", "delta")]
        words = guarantee["definition"] if guarantee["definition"] != "none" else "no formal guarantee"
        lines.append(f"| {version.period} | {version.number} | {version.published} | {words} | {' | '.join(numbers)} |")
    each = [
        f"{one.period}, epsilon = {at_most(one.guarantee.epsilon)}" for one in series.spent().periods if one.guarantee
    ]
    parts = [
        f"# Privacy statement: {title}",
        f"Population: {structure['population']}. Periods: {_span([v.period for v in series.current])}. Made with "
        f"sfumato {software}.",
        "## The series",
        short,
        *([f"Charged for each period, all versions together: {'; '.join(each)}."] if each else []),
        "\n".join(lines),
        *(["## Revisions", *revised] if revised else []),
        f"## {last.period}",
        f"The rest is the statement of version {last.number} of {last.period}, which was published last. It speaks of "
        f"that version alone where it does not name other periods. Every version has its own statement in "
        f"`periods/`, such as `{last.folder}/statement.md`.",
    ]
    return "\n\n".join([*parts, own])


def _span(periods: Sequence[str]) -> str:
    return " to ".join(dict.fromkeys((periods[0], periods[-1])))
