"""An office with four quarters of jobs in CSV files, as it would have them, and the release file of its series."""

import csv
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

QUARTERS = ("2026-Q1", "2026-Q2", "2026-Q3", "2026-Q4")
RELEASE = """
[release]
title = "Jobs, {period}"
population = "jobs"
budget = { alpha = 0.1, epsilon = 6 }

[series]
first = "2026-Q1"

[data]
jobs = { path = "jobs_{period}.csv", worker = "worker", workplace = "workplace" }
workplaces = { path = "workplaces.csv", key = "workplace" }
public = ["place"]

[data.attributes]
place = { codes = { A = "Ahausen", B = "Bedorf", C = "Cestadt" } }
sex = { codes = { F = "women", M = "men" } }

[[table]]
name = "jobs_by_place"
title = "Jobs by place"
count = "jobs"
by = ["place"]
protect = { method = "smooth-pareto", epsilon = 2 }
"""


def write_csv(path: Path, heading: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([heading, *rows])


def read_csv(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))[1:]


def make_office(folder: Path, release: str = RELEASE) -> Path:
    """Write the files of four quarters, in which people come and go, and the release file."""
    draw = random.Random(2026)
    folder.mkdir(parents=True, exist_ok=True)
    workplaces = [(f"w{number}", "AAABBC"[number % 6]) for number in range(18)]
    write_csv(folder / "workplaces.csv", ("workplace", "place"), workplaces)
    jobs = [(f"p{n}", f"w{draw.randrange(18)}", draw.choice("FM")) for n in range(400)]
    for turn, quarter in enumerate(QUARTERS):
        came = [(f"q{turn}-{n}", f"w{draw.randrange(18)}", draw.choice("FM")) for n in range(40)]
        jobs = [job for job in jobs if draw.random() < 0.92] + came
        write_csv(folder / f"jobs_{quarter}.csv", ("worker", "workplace", "sex"), jobs)
    (folder / "release.toml").write_text(release, encoding="utf-8")
    return folder / "release.toml"


def drop_jobs(path: Path, share: float = 0.2) -> None:
    """Change the data of a quarter: some jobs turn out not to exist."""
    draw = random.Random(7)
    write_csv(path, ("worker", "workplace", "sex"), [row for row in read_csv(path) if draw.random() > share])
