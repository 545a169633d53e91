"""The bundle: a folder that appears whole or not at all, with a manifest of its files; in chunks where it is large."""

import csv
import hashlib
import io
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from sfumato.agree.published import agreed_answers
from sfumato.bundle.manifest import MANIFEST, read_manifest
from sfumato.bundle.statement import statement
from sfumato.bundle.structure import structure
from sfumato.chunks import Chunk, settled, write_chunk
from sfumato.durable import alone, exchange, room_for, sync_folder
from sfumato.engine.chunks import EachFile, side_by_side
from sfumato.errors import BundleError
from sfumato.frame.codelists import Codelist
from sfumato.plan import Plan
from sfumato.privacy.answers import AnswerChunks
from sfumato.privacy.book import OverPeriods
from sfumato.sections import About
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.row_files import at_period, parquet

# Publish a table chunk by chunk: a file of protected cells in, a file of published rows out.


@dataclass(frozen=True, kw_only=True)
class PublishChunk:
    """The work on one stored part: a plain value, which may be sent to another process."""

    planned: PublishedTable
    answer: AnswerChunks
    folder: Path
    """Where the file goes: a draft of the bundle."""
    when: tuple[str, str] | None = None
    """The time dimension of a series, and the period."""

    def __call__(self, number: int) -> Chunk:
        """Lay out one part as readers get it and put it on the disk."""
        table = self.planned.rows(self.planned.laid_out(self.answer.read(number)), listed=False)
        table = at_period(table, self.when)
        return write_chunk(self.folder, number, parquet(table), rows=len(table))


def write_bundle(
    plan: Plan,
    answers: Mapping[str, Any],
    charges: Mapping[str, str],
    folder: Path,
    *,
    each_file: EachFile = side_by_side,
    spent: OverPeriods | None = None,
) -> Path:
    """Publish stored answers as a bundle; the same plan and answers give the same bytes, but for the day.

    `charges` holds, for every table, the random identifier of its entry in the ledger, and `spent` what was charged
    about the population in all: nothing else of the ledger may be known outside. `each_file` is where answers in chunks
    are worked on. A bundle that is already there is replaced only when it
    differs.
    """
    refuse_foreign(folder)
    with drafted(folder) as draft:
        write_draft(plan, answers, charges, draft, each_file=each_file, spent=spent)
    return folder


@contextmanager
def drafted(folder: Path) -> Iterator[Path]:
    """A folder to write a bundle into, which then takes the place of an earlier one, at once and whole."""
    with room_for(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with room_for(folder), alone(folder.parent / f".{folder.name}.lock"):
        _mend(folder)
        draft = Path(mkdtemp(prefix=f".{folder.name}.draft-", dir=folder.parent))
        try:
            yield draft
            _put_in_place(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def mend(folder: Path) -> None:
    """Put an earlier bundle back that a killed run had moved aside, and clear its other remains away."""
    if _left_over(folder):
        with alone(folder.parent / f".{folder.name}.lock"):
            _mend(folder)


def _left_over(folder: Path) -> list[Path]:
    """What a killed run left beside a bundle, or another run is writing just now."""
    beside = folder.parent.iterdir() if folder.parent.is_dir() else ()
    return [path for path in beside if path.name.startswith(f".{folder.name}.draft-")]


def _mend(folder: Path) -> None:
    """Clear away what a killed run left: whoever holds the lock is the only writer."""
    for path in _left_over(folder):
        if path.is_dir() and not path.is_symlink():
            if path.name.endswith(_ASIDE) and not folder.exists():
                path.rename(folder)  # killed between two renames: the earlier bundle goes back
            else:
                shutil.rmtree(path)


def refuse_series(folder: Path) -> None:
    """Refuse to publish one period over a series, whose other periods would be gone."""
    with suppress(OSError, ValueError):
        if "series" in json.loads((folder / MANIFEST).read_text(encoding="utf-8")):
            raise BundleError(
                f"bundle folder {folder}",
                expected="a free name, or an earlier bundle of one period",
                found="the bundle of a series, whose periods would be gone",
                do="choose another folder: `bundle = …` in the release file; or add [series] to it, see docs/series.md",
            )


def refuse_another(folder: Path, about: About, tables: Collection[str]) -> None:
    """Refuse to publish over the bundle of another release: one of another title that shares no table, or population.

    Titles, and tables, may change between runs of one release, but hardly all at once.
    """
    try:
        found = json.loads((folder / "structure.json").read_text(encoding="utf-8"))
        names = [each["name"] for each in (*found["tables"], *found.get("cubes", ()))]
        title, population = found["title"], found["population"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    differs = [population != about.population, not set(names) & set(tables)]
    if all(differs) or (title != about.title and any(differs) and not found.get("series")):
        raise BundleError(
            f"bundle folder {folder}",
            expected=f"a free name, or an earlier bundle of '{about.title}'",
            found=f"the bundle of another release, '{title}', with {', '.join(names[:3])}"
            + (f" and {len(names) - 3} more" if len(names) > 3 else ""),
            do="choose another folder: `bundle = …` in the release file; or run with --replace where that one may go",
        )


def refuse_foreign(folder: Path) -> None:
    """Refuse to publish over anything but a bundle of ours; asked before a charge, so that none is wasted."""
    if folder.exists() and (strange := _strange_files(folder)):
        raise BundleError(
            f"bundle folder {folder}",
            expected="a free name, an empty folder or an earlier bundle to which nothing was added",
            found=f"other files: {', '.join(strange[:5])}",
            do="move them away, or choose another folder: `bundle = …` in the release file",
        )
    probe = next(parent for parent in folder.absolute().parents if parent.exists())
    if not os.access(probe, os.W_OK):
        raise BundleError(
            f"bundle folder {folder}",
            expected="a place that can be written to",
            found=f"no permission to write in {probe}",
            do="choose another folder: `bundle = …` in the release file",
        )


def _strange_files(folder: Path) -> list[str]:
    """What lies in a folder that no manifest of ours lists."""
    if not folder.is_dir():
        return [folder.name]
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()}
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        listed = set(manifest["files"]) | {MANIFEST} if str(manifest["software"]).startswith("sfumato ") else set()
    except (OSError, ValueError, KeyError, TypeError):
        listed = set()
    return sorted(found - listed)


def write_draft(
    plan: Plan,
    answers: Mapping[str, Any],
    charges: Mapping[str, str],
    draft: Path,
    *,
    each_file: EachFile,
    spent: OverPeriods | None,
) -> dict[str, Any]:
    """Write all files of a bundle into a folder, and give back its manifest."""
    large = {name: answer for name, answer in answers.items() if isinstance(answer, AnswerChunks)}
    whole = {name: answer for name, answer in answers.items() if name not in large}
    listed = _write_files(plan, whole, draft, large=large, spent=spent)
    for planned in plan.tables:
        if planned.name in large:
            listed |= _write_chunks(planned, large[planned.name], draft, each_file, _when(plan))
    manifest = {
        "software": f"sfumato {plan.software}",
        "title": plan.release.about.title,
        "published": today(),
        "charges": dict(charges),
        "files": {name: listed[name] for name in sorted(listed)},
    }
    write_manifest(draft, manifest)
    return manifest


def today() -> str:
    """The day on which something is published, in universal time."""
    return f"{datetime.now(UTC):%Y-%m-%d}"


def write_manifest(draft: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a bundle, the last of its files, and wait until all names are on the disk."""
    write_file(draft, MANIFEST, json.dumps(manifest, indent=2).encode() + b"\n")
    draft.chmod(0o755)
    for path in (draft / "tables", draft / "codelists", draft / "cubes", draft / "maps", draft):
        if path.exists():
            sync_folder(path)


def _when(plan: Plan) -> tuple[str, str] | None:
    """The time dimension of a series, and the period of a release."""
    return None if plan.release.series is None else (plan.release.series.name, plan.release.about.period)


def _write_chunks(
    planned: PublishedTable,
    answer: AnswerChunks,
    draft: Path,
    each_file: EachFile,
    when: tuple[str, str] | None,
) -> dict[str, dict[str, Any]]:
    """Write the files of a table in parts, and say what the manifest has to list."""
    folder = draft / "tables" / planned.name
    folder.mkdir()
    work = PublishChunk(planned=planned, answer=answer, folder=folder, when=when)
    parts = settled(folder, each_file(range(len(answer)), work))
    for part in parts:
        (folder / part.name).chmod(0o644)  # answers are their owner's alone; what is published is everyone's
    return {f"tables/{planned.name}/{part.name}": {"sha256": part.sha256, "bytes": part.bytes} for part in parts}


def _write_files(
    plan: Plan,
    answers: Mapping[str, Any],
    draft: Path,
    *,
    large: Mapping[str, AnswerChunks],
    spent: OverPeriods | None,
) -> dict[str, dict[str, Any]]:
    """Write all but the manifest and the tables in chunks, side by side, and say what the manifest has to list."""
    for name in dict.fromkeys([*(statistic.folder for statistic in plan.statistics), "codelists"]):
        (draft / name).mkdir()
    when = _when(plan)
    tables = {table.name: answers[table.name] for table in plan.tables if table.name in answers}
    agreed = agreed_answers(plan, tables, large=large)
    with ThreadPoolExecutor() as pool:
        writing: dict[str, Future[dict[str, Any]]] = {}

        def write(name: str, *pieces: Any) -> None:
            writing[name] = pool.submit(write_file, draft, name, *pieces)

        for statistic in plan.statistics:
            if statistic.name in large:
                continue
            files = statistic.files(answers[statistic.name], agreed.get(statistic.name), when)
            # Text is the slowest part: large tables are written in pieces side by side.
            made = {name: [pool.submit(piece) for piece in pieces] for name, pieces in files.items()}
            for name, pieces in made.items():
                write(name, *(piece.result() for piece in pieces))
        classified = (name for statistic in plan.statistics for name in statistic.classified_by)
        for attribute in dict.fromkeys(classified):
            write(f"codelists/{attribute}.csv", codelist_text(plan.codelists[attribute]))
        if when is not None:
            write(f"codelists/{when[0]}.csv", codelist_text(Codelist.of([when[1]])))
        if plan.published_maps:
            (draft / "maps").mkdir()
        for name, content in plan.published_maps.items():
            write(name, content)
        described = structure(plan, large, answers=answers, spent=spent)
        write("structure.json", json.dumps(described, indent=2, ensure_ascii=False).encode() + b"\n")
        write("statement.md", statement(plan, answers, spent=spent).encode())
        return {name: future.result() for name, future in writing.items()}


def write_file(draft: Path, name: str, *pieces: Any) -> dict[str, Any]:
    """Write a file of the draft to the disk and describe it for the manifest."""
    digest, size = hashlib.sha256(), 0
    with (draft / name).open("wb") as file:
        for piece in pieces:
            file.write(piece)
            digest.update(piece)
            size += len(piece)
        file.flush()
        os.fsync(file.fileno())
    return {"sha256": digest.hexdigest(), "bytes": size}


def codelist_text(codelist: Codelist) -> bytes:
    """A codelist as a bundle has it; labels in other languages are in columns such as label_de."""
    lines, others = io.StringIO(newline=""), dict(codelist.translations)
    rows = zip(codelist.codes, codelist.labels, *others.values(), strict=True)
    csv.writer(lines).writerows([("code", "label", *(f"label_{name}" for name in others)), *rows])
    return lines.getvalue().encode()


def _put_in_place(draft: Path, folder: Path) -> None:
    """Move a finished draft to its name; an earlier bundle is whole until then, and steps aside at the same moment."""
    if (folder / MANIFEST).is_file() and _undated(folder) == _undated(draft):
        try:
            read_manifest(folder)
        except BundleError:
            pass  # its files were changed: put the right ones in place
        else:
            return
    aside = draft.with_name(f"{draft.name}{_ASIDE}")
    if not folder.exists():
        draft.rename(folder)
    elif not exchange(draft, folder):  # the earlier bundle is the draft now, and goes when this is done
        # Two renames: a reader between them finds no bundle, and a crash between them is mended by the next run.
        folder.rename(aside)
        draft.rename(folder)
    sync_folder(folder.parent)
    shutil.rmtree(aside, ignore_errors=True)


def _undated(folder: Path) -> Any:
    """What a manifest says but for the date: the same content keeps the date on which it was published first."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        return {name: said for name, said in manifest.items() if name != "published"}
    except (ValueError, AttributeError):
        return None  # no manifest of ours: another one takes its place


_ASIDE = "-old"
"""The end of the name of a bundle that steps aside."""
