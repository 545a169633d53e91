"""A small federal workforce with its release file, for tests that publish indicators, flows and graphs."""

import shutil
from fractions import Fraction
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sfumato.keys import new_key

A, B = Fraction("1.137271"), Fraction("1.283117")
"""Ends of the factors that nothing else in a release looks like."""


def copied(workforce: Path, folder: Path, *changes: tuple[str, str]) -> Path:
    """A copy of the workforce with a key, the same in every run, and a changed release file; returns that file."""
    shutil.copytree(workforce, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.keys.secrets", SimpleNamespace(token_bytes=Random(18).randbytes))
        new_key(folder / "sfumato.key", a=A, b=B)
    release = folder / "release.toml"
    text = release.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    release.write_text(text, encoding="utf-8")
    return release


def published(bundle: Path, table: str) -> pa.Table:
    return pq.read_table(bundle / f"tables/{table}.parquet")


def values(bundle: Path, table: str, *by: str, **where: str) -> dict[tuple[str, ...], int | None]:
    """The values of a published table by some of its dimensions, where others have one code."""
    found = published(bundle, table)
    for name, code in where.items():
        found = found.filter(pc.equal(found[name].cast(pa.string()), code))
    keys = zip(*(found[name].to_pylist() for name in by), strict=True)
    return dict(zip(keys, found["value"].to_pylist(), strict=True))
