"""The bundle: a folder that appears whole or not at all, with a manifest of its files; in chunks where it is large."""

import csv
import hashlib
import io
import json
import os
import shutil
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from sfumato.agree.published import agreed_answers
from sfumato.bundle.manifest import MANIFEST, read_manifest
from sfumato.bundle.statement import statement
from sfumato.bundle.structure import structure
from sfumato.chunks import Chunk, settled, write_chunk
from sfumato.durable import alone, room_for, sync_folder
from sfumato.engine.chunks import EachFile, side_by_side
from sfumato.errors import BundleError
from sfumato.frame import Codelist
from sfumato.plan import Plan
from sfumato.privacy.answers import AnswerChunks
from sfumato.privacy.book import OverPeriods
from sfumato.statistics.published import PublishedTable, parquet

# Publish a table chunk by chunk: a file of protected cells in, a file of published rows out.


@dataclass(frozen=True, kw_only=True)
class PublishChunk:
    """The work on one stored part: a plain value, which may be sent to another process."""

    planned: PublishedTable
    answer: AnswerChunks
    folder: Path
    """Where the file goes: a draft of the bundle."""

    def __call__(self, number: int) -> Chunk:
        """Lay out one part as readers get it and put it on the disk."""
        table = self.planned.rows(self.planned.laid_out(self.answer.read(number)), listed=False)
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
    """Publish stored answers as a bundle; the same plan and answers give the same bytes.

    `charges` holds, for every table, the random identifier of its entry in the ledger, and `spent` what was charged
    about the population in all: nothing else of the ledger may be known outside. `each_file` is where answers in chunks
    are worked on. A bundle that is already there is replaced only when it
    differs.
    """
    refuse_foreign(folder)
    with room_for(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with room_for(folder), alone(folder.parent / f".{folder.name}.lock"):
        for left in folder.parent.iterdir():
            if left.name.startswith(f".{folder.name}.draft-") and left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)  # of a run that was killed: whoever holds the lock is the only writer
        draft = Path(mkdtemp(prefix=f".{folder.name}.draft-", dir=folder.parent))
        try:
            _write_draft(plan, answers, charges, draft, each_file=each_file, spent=spent)
            _put_in_place(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return folder


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


def _write_draft(
    plan: Plan,
    answers: Mapping[str, Any],
    charges: Mapping[str, str],
    draft: Path,
    *,
    each_file: EachFile,
    spent: OverPeriods | None,
) -> None:
    large = {name: answer for name, answer in answers.items() if isinstance(answer, AnswerChunks)}
    whole = {name: answer for name, answer in answers.items() if name not in large}
    listed = _write_files(plan, whole, draft, large=large, spent=spent)
    for planned in plan.tables:
        if planned.name in large:
            listed |= _write_chunks(planned, large[planned.name], draft, each_file)
    manifest = {
        "software": f"sfumato {plan.software}",
        "title": plan.release.about.title,
        "charges": dict(charges),
        "files": {name: listed[name] for name in sorted(listed)},
    }
    _write(draft, MANIFEST, json.dumps(manifest, indent=2).encode() + b"\n")
    draft.chmod(0o755)
    for path in (draft / "tables", draft / "codelists", draft / "cubes", draft / "maps", draft):
        if not path.exists():
            continue
        sync_folder(path)


def _write_chunks(
    planned: PublishedTable, answer: AnswerChunks, draft: Path, each_file: EachFile
) -> dict[str, dict[str, Any]]:
    """Write the files of a table in parts, and say what the manifest has to list."""
    folder = draft / "tables" / planned.name
    folder.mkdir()
    parts = settled(folder, each_file(range(len(answer)), PublishChunk(planned=planned, answer=answer, folder=folder)))
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
    tables = {table.name: answers[table.name] for table in plan.tables if table.name in answers}
    agreed = agreed_answers(plan.tables, plan.reconciled, tables)
    with ThreadPoolExecutor() as pool:
        writing: dict[str, Future[dict[str, Any]]] = {}

        def write(name: str, *pieces: Any) -> None:
            writing[name] = pool.submit(_write, draft, name, *pieces)

        for statistic in plan.statistics:
            if statistic.name in large:
                continue
            files = statistic.files(answers[statistic.name], agreed.get(statistic.name))
            # Text is the slowest part: large tables are written in pieces side by side.
            made = {name: [pool.submit(piece) for piece in pieces] for name, pieces in files.items()}
            for name, pieces in made.items():
                write(name, *(piece.result() for piece in pieces))
        classified = (name for statistic in plan.statistics for name in statistic.classified_by)
        for attribute in dict.fromkeys(classified):
            write(f"codelists/{attribute}.csv", _codelist(plan.codelists[attribute]))
        if plan.published_maps:
            (draft / "maps").mkdir()
        for name, content in plan.published_maps.items():
            write(name, content)
        described = structure(plan, large, answers=answers, spent=spent)
        write("structure.json", json.dumps(described, indent=2, ensure_ascii=False).encode() + b"\n")
        write("statement.md", statement(plan, answers, spent=spent).encode())
        return {name: future.result() for name, future in writing.items()}


def _write(draft: Path, name: str, *pieces: Any) -> dict[str, Any]:
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


def _codelist(codelist: Codelist) -> bytes:
    lines = io.StringIO(newline="")
    csv.writer(lines).writerows([("code", "label"), *zip(codelist.codes, codelist.labels, strict=True)])
    return lines.getvalue().encode()


def _put_in_place(draft: Path, folder: Path) -> None:
    """Move a finished draft to its name; an earlier bundle steps aside first and is whole until then."""
    if (folder / MANIFEST).is_file() and (folder / MANIFEST).read_bytes() == (draft / MANIFEST).read_bytes():
        try:
            read_manifest(folder)
        except BundleError:
            pass  # its files were changed: put the right ones in place
        else:
            return
    aside = draft.with_name(f"{draft.name}-old")
    if folder.exists():
        # Two renames: a reader between them finds no bundle, and a crash between them is mended by the next run.
        folder.rename(aside)
    draft.rename(folder)
    sync_folder(folder.parent)
    shutil.rmtree(aside, ignore_errors=True)
