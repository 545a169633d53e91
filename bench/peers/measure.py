"""The peers, measured: every contestant in processes of its own, in turn, and every result checked."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import duckdb

from bench.peers.contestants import EPSILON, FLOOR, Contestant, contests
from bench.peers.environments import OURS, SCRIPTS, Environment, environment, reason_of
from bench.peers.gate import Run, refused, withheld
from bench.peers.tables import Contested
from bench.peers.watch import Limits, watch
from bench.shared.gate import WrongResultError
from bench.shared.processes import Tell, make_economy
from bench.shared.report import Results
from sfumato.errors import SfumatoError

LIMITS = Limits(seconds=900, peak_bytes=16 * 10**9)
_SLOW = 60
"""Seconds after which a contestant runs only a few times."""
_FEW = 3


@dataclass(frozen=True, kw_only=True)
class Contest:
    """A table and all who publish it."""

    table: Contested
    contestants: tuple[Contestant, ...]


def measure_peers(folder: Path, *, jobs: int, repeat: int, tell: Tell) -> Results:
    """Make an economy, and every table of it in every way."""
    tell("making an economy")
    make_economy(folder, jobs=jobs)
    tell("the true tables")
    asked = [Contest(table=table, contestants=who) for table, who in contests(folder)]
    environments = {}
    for name in dict.fromkeys(who.environment for contest in asked for who in contest.contestants):
        tell(f"the environment of {name}")
        environments[name] = environment(name)
    tables = {}
    for contest in asked:
        runs = _measure(folder, contest, environments, repeat=repeat, tell=tell)
        tables[contest.table.name] = {
            "label": contest.table.label,
            "by": contest.table.by,
            "cells": len(contest.table),
            "contestants": {
                who.name: {
                    "label": who.label,
                    "guarantee": who.guarantee,
                    "environment": who.environment,
                    "ours": who.ours,
                    **runs[who.name].told(),
                }
                for who in contest.contestants
            },
        }
    return {
        "jobs": jobs,
        "limits": asdict(LIMITS),
        "environments": {
            name: {"versions": dict(made.versions), "failure": made.reason}
            for name, made in environments.items()
            if name != OURS
        },
        "tables": tables,
    }


def _measure(
    folder: Path, contest: Contest, environments: Mapping[str, Environment], *, repeat: int, tell: Tell
) -> dict[str, Run]:
    """Run all in turn, each round beginning with another.

    With more than one round a first one is thrown away, which warms the page cache for everybody; not that of a slow
    contestant, for which a cold cache is nothing.
    """
    runs = {who.name: Run(failure=environments[who.environment].reason) for who in contest.contestants}
    warming = repeat > 1
    for number in range(repeat + warming):
        start = number % len(contest.contestants)
        for who in contest.contestants[start:] + contest.contestants[:start]:
            known = runs[who.name]
            if known.failure or (len(known.seconds) >= _FEW and max(known.seconds) > _SLOW):
                continue
            tell(f"{contest.table.label}, round {number + 1} of {repeat + warming}: {who.label}")
            found = _run(folder, contest.table, who, environments[who.environment])
            if found.failure:
                runs[who.name] = refused(known, found.failure)
            elif number or not warming or max(found.seconds) > _SLOW:
                runs[who.name] = replace(
                    found,
                    seconds=known.seconds + found.seconds,
                    inner_seconds=known.inner_seconds + found.inner_seconds,
                    peak_bytes=max(known.peak_bytes, found.peak_bytes),
                )
    if not runs[FLOOR].right:
        raise WrongResultError(f"{contest.table.label}: the floor has no right result: {runs[FLOOR].failure}")
    return runs


def _run(folder: Path, table: Contested, who: Contestant, where: Environment) -> Run:
    """One run in an empty folder, watched and checked."""
    scratch = folder / "run"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    job = {
        "data": str(folder),
        "by": table.by,
        "keys": str(table.keys),
        "epsilon": float(EPSILON),
        "limit": None,
        "query": table.query,
        "out": str(scratch / "result.parquet"),
        "told": str(scratch / "told.json"),
        **who.asked,
    }
    (scratch / "job.json").write_text(json.dumps(job), encoding="utf-8")
    if who.case:
        _prepare(who)
    os.sync()
    watched = watch(
        [where.python or sys.executable, SCRIPTS / who.script, scratch / "job.json"],
        variables=where.variables,
        folder=scratch,
        limits=LIMITS,
    )
    if watched.failure:
        return Run(failure=watched.failure)
    try:
        result = who.result(Path(job["out"]))
        errors = who.check(result, table)
    except (WrongResultError, SfumatoError, duckdb.Error) as wrong:
        return Run(failure=f"wrong result: {reason_of(str(wrong))}")
    told = json.loads(Path(job["told"]).read_text(encoding="utf-8"))
    return Run(
        seconds=(watched.seconds,),
        inner_seconds=(told["seconds"],),
        peak_bytes=watched.peak_bytes,
        errors=errors,
        withheld=withheld(result, table.truth, table.by),
    )


def _prepare(who: Contestant) -> None:
    """Forget what an earlier run left; files that are to be known are validated once, by a run that is not timed."""
    assert who.case
    if not who.case.first:
        try:
            who.case.prepare()
        except FileNotFoundError:
            who.case.publish()
    who.case.prepare()
