"""A Spark cluster on this machine, whose executors are processes of their own, and a release to run on it."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sfumato
from sfumato.keys import new_key
from tests.conftest import need_java

MASTER = "local-cluster[2,1,1024]"
"""Two workers with one core and a gigabyte each; Spark starts an executor on each, as on any cluster."""
PROGRAM = Path(__file__).with_name("on_cluster.py")
RELEASE = """
[release]
title = "Jobs on a cluster"
period = "2025"
budget = {{ alpha = 0.1, epsilon = 4.0, delta = 0.0001 }}
key = "sfumato.key"
ledger = "{engine}.sqlite"
bundle = "{engine}"

[data]
engine = "{engine}"
jobs = {{ path = "jobs.parquet", worker = "worker", workplace = "workplace" }}
workplaces = {{ path = "workplaces.parquet", key = "workplace" }}
workers = {{ path = "workers.parquet", key = "worker" }}
public = ["place", "industry", "ownership"]

[data.spark]
master = "{master}"
spark.executor.memory = "512m"
spark.sql.shuffle.partitions = 2
spark.eventLog.enabled = true
spark.eventLog.compress = false
spark.eventLog.dir = "{folder}"

[data.attributes]
place = {{ codelist = "codelists/place.csv" }}
industry = {{ codelist = "codelists/industry.csv" }}
ownership = {{ codelist = "codelists/ownership.csv" }}
sex = {{ codelist = "codelists/sex.csv" }}

[[table]]
name = "formal"
count = "jobs"
by = ["place", "industry", "ownership"]
protect = {{ method = "smooth-laplace", epsilon = 2.0, delta = 0.0001 }}
parts = 5

[[table]]
name = "keyed"
count = "jobs"
by = ["place", "industry", "sex"]
protect = {{ method = "noise-infusion" }}
parts = 5
"""


@dataclass(frozen=True, kw_only=True)
class Driven:
    """What a program on the cluster printed, and everything that Spark logged meanwhile."""

    printed: dict[str, Any]
    logs: bytes
    """Of the driver and the executors, and the event log."""


def releases(folder: Path) -> dict[str, Path]:
    """Write the same release for each engine into a folder with an economy, with one key for both."""
    (folder / "events").mkdir()
    new_key(folder / "sfumato.key")
    written = {engine: folder / f"{engine}.toml" for engine in ("duckdb", "spark")}
    for engine, path in written.items():
        text = RELEASE.format(engine=engine, master=MASTER, folder=(folder / "events").as_uri())
        path.write_text(text, encoding="utf-8")
    return written


def drive(release: Path, *asked: str) -> Driven:
    """Run tests/engine/on_cluster.py as the driver of a new cluster, and wait until all of it has ended."""
    need_java()
    folder = release.parent
    home = _spark_home(folder)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environment |= {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # these programs end before they could warm up
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
        "PYTHONPATH": str(Path(sfumato.__file__).parents[1]),
    }
    command = [sys.executable, str(PROGRAM), str(release), *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=1_800)
    assert done.returncode == 0, done.stderr[done.stderr.find("Traceback") :][:6000]
    logged = [
        path.read_bytes() for place in (home / "work", folder / "events") for path in place.rglob("*") if path.is_file()
    ]
    lines = done.stdout.splitlines()
    return Driven(printed=json.loads(lines[-1]), logs=b"\n".join([done.stdout.encode(), done.stderr.encode(), *logged]))


def _spark_home(folder: Path) -> Path:
    """The installed Spark under another name, so that the logs of executors are written here."""
    import pyspark

    home = folder / "installed"
    if not home.exists():
        home.mkdir()
        for path in Path(pyspark.__file__).parent.iterdir():
            if path.name != "work":
                (home / path.name).symlink_to(path)
    shutil.rmtree(home / "work", ignore_errors=True)
    return home
