"""Businesses typed by hand with all that is known of their cells, and a plain count of any small table of records."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import floor, isqrt
from pathlib import Path
from typing import Any

from sfumato.cells import Cells, Dimension
from sfumato.engine.factors import PRIME
from sfumato.engine.records import connect_records
from sfumato.frame.records import Microdata
from sfumato.keys import Secret
from sfumato.noise.factors import ONE
from sfumato.noise.keyed import Keyed, hashes
from sfumato.statistics.totals.question import TOTAL, ContributorQuestion
from sfumato.statistics.totals.tabulate import contributors
from tests.conftest import write

SECRET = Secret(key=bytes(range(16)), a=Fraction("1.1"), b=Fraction("1.2"))
KEYED = Keyed(key=SECRET.key)
CODES = {"state": ("A", "B"), "industry": ("X", "Y")}

# Enterprise 2 has businesses in three cells, enterprise 3 lost money, and nobody is in cell B Y.
#             business enterprise state industry profit    weight  asked  rw_1  rw_2
BUSINESSES = """
                    11          1     A        X     70       1.5    yes     3     0
                    12          1     A        X    -50       2       no     2     2
                    13          2     A        X     50      1.25    yes     0   2.5
                    14          2     A        Y      0         4    yes     8     0
                    15          2     B        X     30         1     no     1     1
                    16          3     B        X    -80       2.5     no     5     0
                    17          3     B        X     10  1.000001    yes     0     2
"""

Columns = dict[str, list[Any]]
Row = dict[str, Any]


def by_hand() -> Columns:
    """The businesses typed above, as the columns of a file."""
    rows = [line.split() for line in BUSINESSES.strip().splitlines()]
    business, enterprise, state, industry, profit, weight, asked, first, second = (
        list(c) for c in zip(*rows, strict=True)
    )
    return {
        "business": list(map(int, business)),
        "enterprise": list(map(int, enterprise)),
        "state": state,
        "industry": industry,
        "profit": list(map(int, profit)),
        "weight": list(map(float, weight)),
        "asked": [answer == "yes" for answer in asked],
        "rw_1": list(map(float, first)),
        "rw_2": list(map(float, second)),
    }


RECORDS: dict[str, Any] = {"path": "records.parquet", "unit": "business"}
"""The records without weights, consent or larger units."""
SURVEY = {**RECORDS, "levels": ["enterprise"], "weight": "weight", "consent": "asked"}
"""The records with all of them."""
EVERYONE = {name: value for name, value in SURVEY.items() if name != "consent"}
"""The survey where all are protected, whoever asked."""
REPLICATES = {"columns": "rw_*", "rule": "jackknife"}


def microdata(folder: Path, columns: Columns, *, records: Mapping[str, Any] = SURVEY, **changes: Any) -> Microdata:
    """Write records to a file and describe them."""
    write(folder / "records.parquet", columns)
    described: dict[str, Any] = {
        "records": dict(records),
        "attributes": {name: {"codes": list(codes)} for name, codes in CODES.items()},
        "measures": {"profit": {"minimum": -(10**19)}},
        "folder": folder,
    }
    return Microdata(**(described | changes))


def question(
    *by: str, measure: str | None = "profit", most: int = 3, margins: bool = False, **where: tuple[str, ...]
) -> ContributorQuestion:
    """A measure by some attributes."""
    dimensions = []
    for name in by:
        kept = tuple(code for code in CODES[name] if code in where.get(name, CODES[name]))
        dimensions.append(Dimension(name=name, codes=(*kept, TOTAL) if margins else kept))
    return ContributorQuestion(by=tuple(dimensions), measure=measure, contributors=most, margins=margins, where=where)


def answer(data: Microdata, **questions: ContributorQuestion) -> dict[str, Cells]:
    """Open the engine and answer."""
    with connect_records(data) as tables:
        return contributors(data, tables, questions, SECRET)


def cell(cells: Cells, *codes: str) -> dict[str, int]:
    """All columns of one cell."""
    at = 0
    for dimension, code in zip(cells.dimensions, codes, strict=True):
        at = at * len(dimension) + dimension.codes.index(code)
    return {name: int(column[at]) for name, column in cells.columns.items()}


def key_of(level: str, name: object) -> int:
    """The unit key, from the name alone."""
    return int(KEYED.words(hashes([str(name)]), purpose=f"unit key {level}")[0]) >> 32


def guard_of(level: str, name: object) -> int:
    """The guard word, from the name alone."""
    return int(KEYED.words(hashes([str(name)]), purpose=f"guard {level}")[0]) >> 3


def word(number: int, purpose: str) -> int:
    """The keyed word of a number as a signed one."""
    return int(KEYED.words(_words(number), purpose=purpose).view("int64")[0])


def pair_word(first: int, second: int, purpose: str) -> int:
    """The keyed word of two numbers as a signed one."""
    return int(KEYED.words_of_pairs(_words(first), _words(second), purpose=purpose).view("int64")[0])


def counted_plainly(data: Microdata, columns: Columns, asked: ContributorQuestion) -> dict[tuple[str, ...], Row]:
    """Every cell of a question, by loops over rows; without replicate weights."""
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    rows = [row for row in rows if all(str(row[name]) in codes for name, codes in asked.where.items())]
    found = {}
    for codes in product(*(dimension.codes for dimension in asked.by)):
        wanted = [
            (dimension.name, code)
            for dimension, code in zip(asked.by, codes, strict=True)
            if not (asked.margins and code == TOTAL)
        ]
        found[codes] = _cell(data, asked, [row for row in rows if all(str(row[name]) == code for name, code in wanted)])
    return found


def _cell(data: Microdata, asked: ContributorQuestion, rows: Sequence[Row]) -> Row:
    described = data.records
    for row in rows:
        row["_value"] = 1 if asked.measure is None else row[asked.measure]
        row["_weight"] = ONE if described.weight is None else floor(row[described.weight] * 1e6 + 0.5)
        row["_weighted"] = row["_value"] * row["_weight"]
        row["_asked"] = 1 if described.consent is None else int(row[described.consent])
    total, weights = (sum(row[name] for row in rows) for name in ("_weighted", "_weight"))
    cell = {"records": len(rows), "total": total // ONE, "total_part": total % ONE}
    cell |= {"weights": weights // ONE, "weights_part": weights % ONE}
    weighted = described.weight is not None
    cell["sampling_error"] = _jackknife([row["_weighted"] for row in rows]) if weighted else 0
    cell["count_sampling_error"] = _jackknife([row["_weight"] for row in rows]) if weighted else 0
    for level, column in enumerate(data.units):
        units: dict[Any, Row] = {}
        for row in rows:
            unit = units.setdefault(row[column], dict.fromkeys(("_value", "_weight", "_weighted", "_asked"), 0))
            for name in ("_value", "_weight", "_weighted"):
                unit[name] += row[name]
            unit["_asked"] = max(unit["_asked"], row["_asked"])
        cell |= _level(level, column, units, asked.contributors, records=cell.get("cell_key_0"))
    return cell


def _level(level: int, column: str, units: Mapping[Any, Row], most: int, *, records: int | None) -> Row:
    key = sum(key_of(column, name) for name in units) % PRIME
    cell = {f"units_{level}": len(units), f"cell_key_{level}": key, f"count_word_{level}": word(key, "count")}
    cell[f"guard_{level}"] = sum(guard_of(column, name) for name in units) % PRIME
    asked = [name for name, unit in units.items() if unit["_asked"]]
    order = sorted(asked, key=lambda name: (-abs(units[name]["_value"]), key_of(column, name), str(name)))
    for rank in range(1, most + 1):
        kinds = ("value", "weighted", "weighted_part", "weight", "consent", "unit_word", "cell_word")
        values = [0] * len(kinds)
        if rank <= len(order):
            name, unit = order[rank - 1], units[order[rank - 1]]
            own = key_of(column, name)
            words = word(own, "direction"), pair_word(own, key if records is None else records, "size")
            values = [unit["_value"], *divmod(unit["_weighted"], ONE), unit["_weight"], unit["_asked"], *words]
        cell |= {f"{kind}_{level}_{rank}": value for kind, value in zip(kinds, values, strict=True)}
    return cell


def _jackknife(values: Sequence[int]) -> int:
    """√(n/(n−1)·Σ(x − mean)²), to the nearest whole number."""
    n = len(values)
    if n < 2:
        return 0
    variance = Fraction(n * sum(value * value for value in values) - sum(values) ** 2, n - 1)
    return (isqrt(floor(4 * variance)) + 1) // 2


def _words(number: int) -> Any:
    import numpy as np

    return np.array([number], dtype=np.uint64)
