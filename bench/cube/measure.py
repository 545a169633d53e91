"""A cube of millions of cells: how long it takes to make, and to answer random questions beside DuckDB."""

from pathlib import Path
from time import perf_counter

import duckdb
import numpy as np
import pyarrow as pa

from bench.cube.survey import ATTRIBUTES, CELLS, CUBE, codes_of, write_survey
from bench.shared.gate import WrongResultError
from bench.shared.processes import SFUMATO, Tell, seconds_of, told_by
from bench.shared.report import Results
from sfumato.bundle.read import open_cube
from sfumato.release import load
from sfumato.statistics.cube.cube_query import CubeAnswer
from sfumato.statistics.cube.published_cube import PublishedCube

_ROUNDS = 3
_OPENINGS = 5
_QUESTIONS = 200
_SUMS = "sum(count)::hugeint as count, sum(weighted)::hugeint as weighted"

Question = tuple[list[str], dict[str, list[str]]]


def measure_cube(folder: Path, *, quotes: int, tell: Tell) -> Results:
    """Everything about a cube; a wrong result ends it."""
    tell("making a survey")
    file = write_survey(folder / "survey", records=quotes)
    runs = []
    for number in range(1, _ROUNDS + 1):
        tell(f"build, perturb and calibrate, write: round {number} of {_ROUNDS}")
        runs.append(told_by("cube.child", file))
    tell("sfumato run")
    whole = seconds_of(SFUMATO, "run", file)
    bundle = load(file).bundle
    opening, first, cube = _opened(bundle, tell)
    stored = bundle / "cubes" / f"{CUBE}.parquet"
    return {
        "records": quotes,
        "cells": CELLS,
        "seconds": {name: [run["seconds"][name] for run in runs] for name in runs[0]["seconds"]},
        "peak_bytes": max(run["peak_bytes"] for run in runs),
        "file_bytes": stored.stat().st_size,
        "command_seconds": whole,
        "opening_seconds": opening,
        "first_answer_seconds": first,
        "answer_seconds": _answers(cube, stored, tell),
        "shell_seconds": [seconds_of(SFUMATO, "query", bundle, CUBE, "--by", "education") for _ in range(_ROUNDS)],
    }


def _opened(bundle: Path, tell: Tell) -> tuple[list[float], float, PublishedCube]:
    """Seconds to open the cube, checked against its manifest, and to answer a first question."""
    opening = []
    for number in range(1, _OPENINGS + 1):
        tell(f"opening the cube, round {number} of {_OPENINGS}")
        begin = perf_counter()
        cube = open_cube(bundle, CUBE)
        opening.append(perf_counter() - begin)
    begin = perf_counter()
    cube.totals(["strength", "education"], where={"telework": codes_of("telework")[:1]})
    return opening, perf_counter() - begin, cube


def _answers(cube: PublishedCube, stored: Path, tell: Tell) -> dict[str, list[float]]:
    """Seconds of the same questions to the dense array, to DuckDB over the file, and to DuckDB in memory."""
    seconds: dict[str, list[float]] = {"dense": [], "file": [], "memory": []}
    with duckdb.connect() as connection:
        source = f"read_parquet('{stored}')"
        tell("reading the cube into DuckDB")
        connection.execute(f"create table cells as select * from {source}")
        for number, (by, where) in enumerate(_questions(), start=1):
            tell(f"question {number} of {_QUESTIONS}")
            begin = perf_counter()
            ours = cube.totals(by, where=where)
            ours.to_arrow()
            seconds["dense"].append(perf_counter() - begin)
            for name, table in (("file", source), ("memory", "cells")):
                begin = perf_counter()
                theirs = connection.execute(_sql(table, by, where)).to_arrow_table()
                seconds[name].append(perf_counter() - begin)
                _check(ours, theirs, by)
    return seconds


def _questions() -> list[Question]:
    """The same random questions every time: by up to three attributes, each attribute filtered with a chance of 0.3."""
    rng = np.random.default_rng(7)
    names, found = list(ATTRIBUTES), []
    for _ in range(_QUESTIONS):
        by = [names[place] for place in rng.permutation(len(names))[: rng.integers(0, 4)]]
        where = {}
        for name, size in ATTRIBUTES.items():
            if rng.random() < 0.3:
                places = rng.permutation(size)[: rng.integers(1, size + 1)]
                where[name] = [codes_of(name)[place] for place in places]
        found.append((by, where))
    return found


def _sql(table: str, by: list[str], where: dict[str, list[str]]) -> str:
    kept = " and ".join(f"{name} in ({', '.join(map(repr, codes))})" for name, codes in where.items())
    return f"select {', '.join([*by, _SUMS])} from {table} where {kept or 'true'}" + (" group by all" if by else "")


def _check(ours: CubeAnswer, theirs: pa.Table, by: list[str]) -> None:
    """Refuse an answer that DuckDB does not find, number for number."""
    sums = {
        tuple(row[name] for name in by): int(row["weighted"]) for row in theirs.select([*by, "weighted"]).to_pylist()
    }
    assert ours.exact is not None
    codes = [dimension.codes for dimension in ours.dimensions]
    found = {
        tuple(c[place] for c, place in zip(codes, at, strict=True)): int(value)
        for at, value in np.ndenumerate(ours.exact)
    }
    if found != sums:
        raise WrongResultError("the dense array and DuckDB do not find the same totals")
