"""Questions in SQL to the files of an economy."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from sfumato.errors import DataError

Ask = Callable[..., list[tuple[Any, ...]]]


def need_files(folder: Path, names: Sequence[str], *, what: str, command: str) -> None:
    """Refuse to measure a folder that does not hold this kind of economy."""
    for name in names:
        if not (folder / name).is_file():
            raise DataError(
                f"folder {folder}",
                expected=f"{what}, with a file {name}",
                found="no such file",
                do=f"make one first: `{command}`",
            )


@contextmanager
def asking(*paths: Path) -> Iterator[Ask]:
    """A function that answers SQL about these files, its `$files`, with any further values given by name."""
    files = [str(path) for path in paths]
    with duckdb.connect() as connection:

        def ask(sql: str, **values: int) -> list[tuple[Any, ...]]:
            return connection.execute(sql, {"files": files, **values}).fetchall()

        yield ask
