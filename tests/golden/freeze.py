"""Freeze what the code does now: `python -m tests.golden.freeze`, or with names for these only.

Names are economies, cases, or `earlier` for the folder that is kept whole. Data
files that are frozen already are kept: their bytes are known to ledgers.
"""

import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.golden.cases import CASES, EARLIER, FROZEN, QUERIES
from tests.golden.data import WRITERS, write_key
from tests.golden.economies import ECONOMIES, RELEASED
from tests.golden.running import economy_files, run, sfumato


def made_economy(name: str, folder: Path) -> Path:
    """Make an economy of the list in a folder."""
    sfumato("economy", ECONOMIES[name][0], folder, *ECONOMIES[name][1:])
    return folder


def economy_text(folder: Path) -> str:
    """What the files of an economy hold, as text."""
    lines = (f"  {json.dumps(name)}: {json.dumps(told)}" for name, told in economy_files(folder).items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def economy_runs(folder: Path) -> dict[str, str]:
    """What runs of the release files of an economy leave behind."""
    write_key(folder)
    releases = sorted(folder.glob("*.toml"))
    return {f"{path.stem}/{name}": text for path in releases for name, text in run(path, files=False).items()}


def query_text(folder: Path) -> str:
    """What bundles answer to the list of questions."""
    asked = {name: sfumato("query", folder / bundle, *words) for name, (bundle, *words) in QUERIES.items()}
    lines = (f"  {json.dumps(name)}: {json.dumps(told, ensure_ascii=False)}" for name, told in asked.items())
    return ("{\n" + ",\n".join(lines) + "\n}\n").replace(f"{folder}/", "")


def write_earlier(folder: Path) -> None:
    """Write and run the releases of the folder that is kept whole."""
    for name, case in EARLIER.items():
        case.written(folder).rename(folder / f"{name}.toml")
        sfumato("run", folder / f"{name}.toml")
    for path in (folder / "ledger.store").rglob("*"):
        if path.name in ("lock", "mark.lock", "memory.json"):  # nothing but locks, and what spares reading files again
            path.unlink()
    for path in folder.glob(".*"):
        path.unlink()


def frozen_texts(folder: Path) -> dict[str, str]:
    """The frozen texts of a folder, by name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def write_texts(folder: Path, texts: dict[str, str]) -> None:
    """Replace the frozen texts of a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def freeze(names: list[str]) -> None:
    """Freeze everything, or what is named."""
    for name, write in WRITERS.items():
        if not (FROZEN / "data" / name).exists():
            (FROZEN / "data" / name).mkdir(parents=True)
            write(FROZEN / "data" / name)

    def asked(name: str) -> bool:
        return not names or name in names

    with TemporaryDirectory() as made:
        for name in ECONOMIES:
            if asked(name):
                folder = made_economy(name, Path(made) / name)
                write_texts(FROZEN / "economies" / name, {"files.json": economy_text(folder)})
                if name in RELEASED:
                    write_texts(FROZEN / "economy_releases" / name, economy_runs(folder))
        for name, case in CASES.items():
            if asked(name):
                write_texts(FROZEN / "releases" / name, run(case.written(Path(made) / "of" / name)))
        if asked("earlier"):
            folder = Path(made) / "earlier"
            write_earlier(folder)
            shutil.rmtree(FROZEN / "earlier", ignore_errors=True)
            shutil.copytree(folder, FROZEN / "earlier" / "folder")
            (FROZEN / "earlier" / "queries.json").write_bytes(query_text(folder).encode())


if __name__ == "__main__":
    freeze(sys.argv[1:])
