"""The bundle: a folder that appears whole or not at all, with a manifest of its files."""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from sfumato.cells import Cells
from sfumato.durable import sync_file, sync_folder
from sfumato.errors import BundleError
from sfumato.plan import Plan
from sfumato.publish.statement import statement
from sfumato.publish.structure import structure
from sfumato.publish.table import published_table

MANIFEST = "manifest.json"


def write_bundle(plan: Plan, answers: Mapping[str, Cells], charges: Mapping[str, str], folder: Path) -> Path:
    """Publish stored answers as a bundle; the same plan and answers give the same bytes.

    `charges` holds, for every table, the random identifier of its entry in the ledger: the only thing of the ledger
    that may be known outside. A bundle that is already there is replaced only when it differs.
    """
    refuse_foreign(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(mkdtemp(prefix=f".{folder.name}.draft-", dir=folder.parent))
    try:
        _write_files(plan, answers, draft)
        listed = sorted(path for path in draft.rglob("*") if path.is_file())
        manifest = {
            "software": f"sfumato {plan.software}",
            "title": plan.release.about.title,
            "charges": dict(charges),
            "files": {str(path.relative_to(draft)): _entry(path) for path in listed},
        }
        (draft / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        draft.chmod(0o755)
        for path in (*listed, draft / MANIFEST):
            sync_file(path)
        for path in (draft / "tables", draft):
            sync_folder(path)
        _put_in_place(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a bundle and check every file against it."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        listed = {str(name): dict(entry) for name, entry in manifest["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _not_a_bundle(folder, str(error) or "no manifest") from error
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {MANIFEST}
    if found != listed.keys():
        odd = sorted(found ^ listed.keys())
        raise _not_a_bundle(folder, f"files missing or added: {', '.join(odd[:5])}")
    for name, entry in listed.items():
        if _entry(folder / name) != entry:
            raise _not_a_bundle(folder, f"{name} was changed")
    return manifest


def refuse_foreign(folder: Path) -> None:
    """Refuse to publish over anything that is not a bundle; asked before a charge, so that none is wasted."""
    if folder.exists() and not (folder / MANIFEST).is_file():
        empty = folder.is_dir() and not any(folder.iterdir())
        if not empty:
            raise BundleError(
                f"bundle folder {folder}",
                expected="a free name, an empty folder or an earlier bundle",
                found="a folder with other files" if folder.is_dir() else "a file",
                do="choose another folder: `bundle = …` in the release file",
            )
    probe = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    if not os.access(probe, os.W_OK):
        raise BundleError(
            f"bundle folder {folder}",
            expected="a place that can be written to",
            found=f"no permission to write in {probe}",
            do="choose another folder: `bundle = …` in the release file",
        )


def _write_files(plan: Plan, answers: Mapping[str, Cells], draft: Path) -> None:
    tables = draft / "tables"
    tables.mkdir()
    with ThreadPoolExecutor() as pool:
        writing = []
        for planned in plan.tables:
            name = planned.table.name
            table = published_table(planned, answers[name])
            writing.append(pool.submit(pq.write_table, table, tables / f"{name}.parquet", compression="zstd"))
            writing.append(pool.submit(_write_csv, table, tables / f"{name}.csv"))
        for future in writing:
            future.result()
    described = json.dumps(structure(plan), indent=2, ensure_ascii=False)
    (draft / "structure.json").write_text(described + "\n", encoding="utf-8")
    (draft / "statement.md").write_text(statement(plan), encoding="utf-8")


def _write_csv(table: pa.Table, path: Path) -> None:
    options = pyarrow.csv.WriteOptions(quoting_style="needed")
    plain = pa.table(
        {
            name: column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    )
    pyarrow.csv.write_csv(plain, path, options)


def _entry(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": path.stat().st_size}


def _put_in_place(draft: Path, folder: Path) -> None:
    """Move a finished draft to its name; an earlier bundle steps aside first and is whole until then."""
    if (folder / MANIFEST).is_file() and (folder / MANIFEST).read_bytes() == (draft / MANIFEST).read_bytes():
        try:
            read_manifest(folder)
        except BundleError:
            pass  # its files were changed: put the right ones in place
        else:
            return
    aside = draft.with_name(draft.name.replace(".draft-", ".old-"))
    if folder.exists():
        folder.rename(aside)
    draft.rename(folder)
    sync_folder(folder.parent)
    shutil.rmtree(aside, ignore_errors=True)


def _not_a_bundle(folder: Path, found: str) -> BundleError:
    return BundleError(
        f"bundle {folder}",
        expected="a bundle whose files match its manifest",
        found=found,
        do="publish it again with `sfumato run`; the stored answers cost nothing",
    )
