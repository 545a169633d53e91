"""The command line, run in this process, and what it leaves behind, written down so that chance and time are left out.

What is left out, and nothing else:

- of the ledger: identifiers, times, and the hashes that chain entries, which depend on them; digests of answers, which
  depend on chance or on the version of the Parquet writer; and for economies, whose files are written anew, the digest
  of the beginnings and ends of files;
- of stored answers and published tables: the values of formal methods, and with them errors, intervals, noisy counts
  and statuses;
- of cubes: all sums, and of the figures beside them how the calibration came out (`converged`, `largest_gap`, `cycles`
  and `gaps`);
- of statements: the version of the software, and the sentence about controls that a cube does not meet;
- of what a run prints: the path of the bundle, and the controls that were not met;
- of the manifest: the version of the software, the day of publication, which earlier versions did not have, the
  identifiers of charges, and sizes and digests of files.
"""

import contextlib
import csv
import hashlib
import io
import json
import re
import signal
import sqlite3
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.cli import main

CODES = "dictionary<values=string, indices=int32, ordered=0>"
"""The type of columns of codes, which is long and frequent."""
LONG = 10_000
"""Longer tables are frozen as their digest."""
DRAWN = frozenset({"value", "error", "low", "high", "status", "count", "weighted"})
"""Columns of formal tables and cubes that depend on chance; measures of cubes are numbers, and others too."""


def sfumato(*words: str | Path) -> dict[str, Any]:
    """Run a command and return what it prints as JSON."""
    said, complained = io.StringIO(), io.StringIO()
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    argv, sys.argv = sys.argv, ["sfumato", *map(str, words), "--json"]
    code: Any = 0
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
            main()
    except SystemExit as left:
        code = left.code
    finally:
        sys.argv = argv
        for number, handler in kept.items():
            signal.signal(number, handler)
    assert not code, said.getvalue() + complained.getvalue()
    found: dict[str, Any] = json.loads(said.getvalue().splitlines()[-1])
    return found


def digest(content: bytes | str) -> str:
    """The SHA-256 of bytes or of a text."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def values_digest(table: pa.Table) -> str:
    """The SHA-256 of decoded values, whatever wrote them: names, types and values of every column."""
    told = hashlib.sha256()
    for name in table.column_names:
        column = table[name]
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        told.update(f"{name} {kind} {column.to_pylist()!r}\n".encode())
    return told.hexdigest()


def types_of(schema: pa.Schema) -> dict[str, str]:
    """The names of columns with their types."""
    return {field.name: "codes" if str(field.type) == CODES else str(field.type) for field in schema}


def economy_files(folder: Path) -> dict[str, Any]:
    """What every file of an economy holds; bytes of Parquet files count for the writer that wrote them."""
    found: dict[str, Any] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if path.suffix != ".parquet":
            found[name] = {"bytes": digest(path.read_bytes())}
            continue
        table, metadata = pq.read_table(path), pq.read_metadata(path)
        found[name] = {
            "rows": len(table),
            "columns": types_of(table.schema),
            "values": values_digest(table),
            "bytes": digest(path.read_bytes()),
            "writer": digest(metadata.created_by)[:8],
        }
    return found


def entries(ledger: Path) -> list[dict[str, Any]]:
    """All entries of a ledger, as the file holds them."""
    connection = sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)
    try:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute("SELECT * FROM entries ORDER BY sequence")]
    finally:
        connection.close()


def ledger_text(ledger: Path, *, files: bool = True) -> str:
    """The entries of a ledger without what depends on chance and time; `files` keeps digests of bytes of data files."""
    left_out = {"sequence", "identifier", "time", "previous", "hash", "answer"}
    lines = []
    for row in entries(ledger):
        kept = {name: value for name, value in row.items() if name not in left_out and value}
        if len(kept.get("statement", "")) > 100:  # it is the same in many entries, and in the structure of the bundle
            kept["statement"] = digest(kept["statement"])
        text = json.dumps(kept, ensure_ascii=False)
        lines.append(text if files else re.sub(r'\\"files\\":\\"[0-9a-f]+\\"', r"\"files\":\"MASKED\"", text))
    return "[\n" + ",\n".join(lines) + "\n]\n"


SINCE = frozenset({"statement", "changes", "additive", "listed_once", "totals", "role", "measure", "noise"})
"""Facts that structures were given after the golden files were frozen; all others stay as they were."""


def as_frozen(content: bytes) -> Any:
    """A structure without what was added since."""
    structure: dict[str, Any] = json.loads(content)
    kept = {name: value for name, value in structure.items() if name not in SINCE}
    for folder in ("tables", "cubes"):
        for about in kept.get(folder, ()):
            for name in SINCE & about.keys():
                del about[name]
            for dimension in about["dimensions"]:
                dimension.pop("role", None)
    return kept


def run(release: Path, *, files: bool = True) -> dict[str, str]:
    """Run a release, and return everything it left behind, as texts by name."""
    printed = sfumato("run", release)
    about = tomllib.loads(release.read_text(encoding="utf-8"))["release"]
    bundle, ledger = (
        release.parent / about.get(name, usual) for name, usual in (("bundle", "bundle"), ("ledger", "ledger.sqlite"))
    )
    told = {name: value for name, value in printed.items() if name not in ("bundle", "controls_not_met")}
    for part in (*told.get("tables", ()), *told.get("cubes", ())):
        part.pop("guarantee", None)  # it is in the structure of the bundle
    structure = as_frozen((bundle / "structure.json").read_bytes())
    written = json.dumps(structure, indent=2, ensure_ascii=False).encode() + b"\n"
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    keys = [key for key in manifest if key != "published"]
    keyed = {table["name"] for table in structure["tables"] if table["guarantee"]["definition"] == "none"}
    named = sorted(path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file())
    found = {
        "run.json": _lines(_rounded(told)),
        "ledger.json": ledger_text(ledger, files=files),
        "structure.json": _lines({"digest": digest(written), **structure}),
        "statement.md": masked_statement((bundle / "statement.md").read_bytes().decode()),
        "files.json": _lines(
            {
                "manifest": {
                    "title": manifest["title"],
                    "charges": list(manifest["charges"]),
                    "keys": keys,
                },
                "files": named,
                "codelists": {path.stem: digest(path.read_bytes()) for path in sorted(bundle.glob("codelists/*.csv"))},
                "tables": dict(_published(bundle, keyed)),
                "answers": _answers(ledger, keyed),
            }
        ),
    }
    for name in sorted(keyed):
        text = (bundle / f"tables/{name}.csv").read_bytes().decode()
        found[f"tables/{name}.csv"] = text if len(text) < LONG else f"{len(text)} characters, {digest(text)}\n"
    return found


def masked_statement(text: str) -> str:
    """A statement without the version of the software, and without by how much cubes miss their controls."""
    text = re.sub(r"Made with sfumato [^ ]+\.(?=\s)", "Made with sfumato VERSION.", text)
    return re.sub(r" \*\*It does not add up to them: after [^*]*\*\*", "", text)


def metadata_of(schema: pa.Schema) -> dict[str, str]:
    """Digests of what a Parquet file of ours says of itself, but for how a calibration came out."""
    found = {}
    for key, value in (schema.metadata or {}).items():
        if key == b"ARROW:schema":
            continue
        told = json.loads(value)
        calibration = told.get("figures", {}).get("calibration") if isinstance(told, dict) else None
        if calibration:
            told["figures"]["calibration"] = {"method": calibration["method"]}
        found[key.decode()] = digest(json.dumps(told) if calibration else value)
    return found


def _published(bundle: Path, keyed: set[str]) -> Iterator[tuple[str, Any]]:
    """Of every table and cube the columns with their types, and what they hold as far as no chance decides it."""
    for path in sorted([*bundle.glob("tables/**/*.parquet"), *bundle.glob("cubes/*.parquet")]):
        table, name = pq.read_table(path), path.relative_to(bundle).as_posix()
        exact = path.stem in keyed
        codes = table if exact else table.select([n for n in table.column_names if _is_exact(table, n)])
        yield name, _described(table) | {"values": values_digest(codes)}
        beside = path.with_suffix(".csv")
        if beside.exists() and not exact:
            yield beside.relative_to(bundle).as_posix(), _codes_of_csv(beside, codes.column_names)


def _described(table: pa.Table) -> dict[str, Any]:
    return {"rows": len(table), "columns": types_of(table.schema), "metadata": metadata_of(table.schema)}


def _codes_of_csv(path: Path, columns: list[str]) -> dict[str, Any]:
    rows = list(csv.reader(io.StringIO(path.read_bytes().decode(), newline="")))
    places = [rows[0].index(name) for name in columns]
    return {"header": rows[0], "codes": digest(repr([[row[place] for place in places] for row in rows]))}


def _is_exact(table: pa.Table, name: str) -> bool:
    return name not in DRAWN and (name == "establishments" or pa.types.is_dictionary(table[name].type))


def _answers(ledger: Path, keyed: set[str]) -> dict[str, Any]:
    """Of every stored answer, by the name of its table: its columns and what its file says of itself, or all of it."""
    store = ledger.with_suffix(".store") / "answers"
    charged = {row["question"]: row["table"] for row in entries(ledger) if row["kind"] == "charge"}
    found: dict[str, Any] = {}
    for path in sorted([*store.glob("*.parquet"), *store.glob("*/*.parquet")]):
        whole = path.parent == store
        of = charged[(path if whole else path.parent).name.split(".")[0]]
        table = pq.read_table(path)
        found[of if whole else f"{of}/{path.name}"] = _described(table) | (
            {"values": values_digest(table)} if of in keyed else {}
        )
    return dict(sorted(found.items()))


def _rounded(told: Any) -> Any:
    """The same with numbers of nine digits: the last ones are the machine's."""
    if isinstance(told, dict):
        return {name: _rounded(part) for name, part in told.items()}
    if isinstance(told, list):
        return [_rounded(part) for part in told]
    return float(f"{told:.9g}") if isinstance(told, float) else told


def _lines(value: dict[str, Any]) -> str:
    """JSON with one line for every entry of its parts."""
    parts = []
    for name, part in value.items():
        if isinstance(part, dict):
            inner = [f"  {json.dumps(key)}: {_line(what)}" for key, what in part.items()]
            parts.append(f"{json.dumps(name)}: {{\n" + ",\n".join(inner) + "\n}")
        elif isinstance(part, list):
            parts.append(f"{json.dumps(name)}: [\n" + ",\n".join(f"  {_line(what)}" for what in part) + "\n]")
        else:
            parts.append(f"{json.dumps(name)}: {_line(part)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
