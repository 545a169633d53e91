"""Data typed by rule, the same on every machine: jobs, a panel of jobs, businesses, people, a survey, and a key."""

import json
import random
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Columns = dict[str, list[Any]]


def write_jobs(folder: Path) -> None:
    """Workplaces, workers and jobs in three files, and the same jobs joined in one."""
    chance = random.Random(1)
    places, industries = "ABC", ("11", "62", "81")
    workplaces: Columns = {
        "workplace": [f"workplace{number:03}" for number in range(48)],
        # Nobody farms in C: a structural zero.
        "place": [places[number % 3] for number in range(48)],
        "industry": [
            industries[1 + number // 3 % 2] if number % 3 == 2 else industries[number % 7 % 3] for number in range(48)
        ],
        "owner": ["public" if number % 5 == 0 else "private" for number in range(48)],
    }
    workers: Columns = {
        "worker": list(range(1000, 1420)),
        "sex": [chance.choice("FM") for _ in range(420)],
        "age": [str(1 + int(3 * chance.random() ** 2)) for _ in range(420)],
    }
    linked = {(worker, int(47 * chance.random() ** 2)) for worker in range(420)}
    linked |= {(int(420 * chance.random()), int(48 * chance.random())) for _ in range(120)}
    pairs = sorted(linked)
    jobs: Columns = {
        "worker": [1000 + worker for worker, _ in pairs],
        "workplace": [workplaces["workplace"][workplace] for _, workplace in pairs],
        "tenure": [chance.choice(["short", "long"]) for _ in pairs],
    }
    joined: Columns = {
        "workplace": jobs["workplace"],
        "place": [workplaces["place"][workplace] for _, workplace in pairs],
        "industry": [workplaces["industry"][workplace] for _, workplace in pairs],
        "owner": [workplaces["owner"][workplace] for _, workplace in pairs],
        "sex": [workers["sex"][worker] for worker, _ in pairs],
        "age": [workers["age"][worker] for worker, _ in pairs],
        "tenure": jobs["tenure"],
    }
    _write(folder, {"workplaces": workplaces, "workers": workers, "jobs": jobs, "joined": joined})


def write_panel(folder: Path) -> None:
    """Employers, workers and their earnings in six quarters, and in three years."""
    chance = random.Random(2)
    quarters = [f"{year}-Q{quarter}" for year in (2024, 2025) for quarter in (1, 2, 3, 4)][:6]
    employers: Columns = {
        "employer": [f"employer{number:04}" for number in range(24)],
        "state": ["AB"[number % 2] for number in range(24)],
        "agency": ["XYZ"[number // 2 % 3] for number in range(24)],
    }
    workers: Columns = {
        "worker": [f"w{number:03}" for number in range(240)],
        "sex": [chance.choice("FM") for _ in range(240)],
    }
    _write(folder, {"employers": employers, "workers": workers})
    for name, column, periods in (("quarters", "quarter", quarters), ("years", "year", ["2023", "2024", "2025"])):
        rows: Columns = {"worker": [], "employer": [], column: [], "earnings": []}
        for worker in workers["worker"]:
            employer = chance.choice(employers["employer"][:18])
            for period in periods:
                if chance.random() < 0.3:
                    employer = chance.choice(employers["employer"])
                if chance.random() < 0.9:
                    rows["worker"].append(worker)
                    rows["employer"].append(employer)
                    rows[column].append(period)
                    rows["earnings"].append(1000 + int(20_000 * chance.random() ** 2))
        _write(folder, {name: rows})


def write_businesses(folder: Path) -> None:
    """Businesses with enterprises, weights, replicate weights, consent, a turnover and profits that may be losses."""
    chance, number = random.Random(3), 240
    weight = [1.0 if chance.random() < 0.2 else round(1 + 9 * chance.random(), 2) for _ in range(number)]
    records: Columns = {
        "business": list(range(1, number + 1)),
        "enterprise": [f"e{1 + int(180 * chance.random())}" for _ in range(number)],
        "state": [chance.choice("AB") for _ in range(number)],
        "industry": [chance.choice("XXXYYZ") for _ in range(number)],
        "turnover": [int(1_000 / (1 - chance.random()) ** 1.2) for _ in range(number)],
        "profit": [int(20_000 * (chance.random() - 0.3)) for _ in range(number)],
        "weight": weight,
        "asked": [chance.random() < 0.5 for _ in range(number)],
    }
    for replicate in range(1, 9):
        records[f"rw_{replicate}"] = [w if w == 1 else round(w * chance.choice([0.5, 1.5]), 3) for w in weight]
    _write(folder, {"records": records})


def write_people(folder: Path) -> None:
    """People with a record in each of two years, and the same people with one record."""
    chance, number = random.Random(4), 240
    titles = [chance.choice(["faculty", "staff"]) for _ in range(number)]
    ranks = [int(101 * chance.random()) for _ in range(number)]
    rows: Columns = {name: [] for name in ("person", "year", "title", "sector", "rank", "score", "earnings")}
    for person in range(number):
        for year in ("2001", "2002"):
            rows["person"].append(person)
            rows["year"].append(year)
            rows["title"].append(titles[person])
            rows["sector"].append(chance.choice("abc"))
            rows["rank"].append(ranks[person])
            rows["score"].append(ranks[person] // 2 + int(60 * chance.random()))
            rows["earnings"].append(10_000 + int(90_000 * chance.random() ** 2) + 500_000 * (person == 7))
    once = {name: values[::2] for name, values in rows.items() if name != "year"}
    _write(folder, {"people": rows, "once": once})


def write_survey(folder: Path) -> None:
    """A survey with weights, replicate weights and two measures, and files of totals that are public already."""
    chance, number = random.Random(5), 300
    weight = [round(1 + 60 * chance.random() ** 3, 4) for _ in range(number)]
    records: Columns = {
        "id": list(range(number)),
        "region": [chance.choice("NESW") for _ in range(number)],
        "job": [chance.choice("abc") for _ in range(number)],
        "level": [chance.choice("12") for _ in range(number)],
        "pay": [int(5_000 * chance.random()) for _ in range(number)],
        "hours": [int(60 * chance.random()) for _ in range(number)],
        "weight": weight,
    }
    for replicate in range(1, 9):
        records[f"rw_{replicate}"] = [round(w * chance.choice([0.293, 1.0, 1.707]), 4) for w in weight]
    _write(folder, {"survey": records})
    lines = ["region,count", *(f"{region},{80 + 5 * place}" for place, region in enumerate("NESW"))]
    (folder / "totals.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    lines = ["level,count,weighted", "1,170,2100", "2,180,2400"]
    (folder / "weighted.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_key(folder: Path) -> None:
    """The key file, with the key 00 01 … 0f and factors between 1.1 and 1.2."""
    fields = {"key": bytes(range(16)).hex(), "made": "2025-01-01T00:00:00+00:00", "a": "1.1", "b": "1.2"}
    check = blake2b(json.dumps(fields, sort_keys=True).encode(), digest_size=8, person=b"check").hexdigest()
    content = {"note": "Of tests.", "format": 1, "generations": [fields | {"check": check}]}
    path = folder / "sfumato.key"
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    path.chmod(0o600)


def _write(folder: Path, tables: dict[str, Columns]) -> None:
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")


WRITERS: Mapping[str, Callable[[Path], None]] = {
    "jobs": write_jobs,
    "panel": write_panel,
    "businesses": write_businesses,
    "people": write_people,
    "survey": write_survey,
}
"""What writes the data that releases are about, by name."""
