"""Attributes made of columns of any name are counted like columns that have their codes, by every kind of statistic."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sfumato.checking import check, checked
from sfumato.frame.attributes import Attribute
from sfumato.release import Release, load
from tests.golden.cases import CASES


def odd(name: str) -> str:
    return f'_{name.upper()}.[€] "{name}"'


def rewritten(folder: Path, release: Release) -> Release:
    """The release about files whose columns have other names and other codes, put right again by its rules."""
    data = release.data
    named = {name for name, one in data.measures.items() if one.column in (None, name)}  # after their columns
    for file in folder.glob("*.parquet"):
        table = pq.read_table(file)
        for name in [name for name in table.column_names if name in data.attributes or name in named]:
            at, values = table.column_names.index(name), table[name]
            if name in data.attributes:
                values = pc.binary_join_element_wise("~", pc.cast(values, pa.string()), "")
            table = table.set_column(at, odd(name), values)
        pq.write_table(table, file)
    measures = {
        name: one.model_copy(update={"column": odd(name)}) if name in named else one
        for name, one in data.measures.items()
    }
    attributes = {name: _recoded(release, name) for name in data.attributes}
    said = data.model_copy(update={"attributes": attributes, "measures": measures})
    return release.model_copy(update={"data": said})


def _recoded(release: Release, name: str) -> Attribute:
    codes = release.data.declared_codes(name)
    assert codes is not None
    rule: Any = {"column": odd(name), "recode": {code: (f"~{code}",) for code in codes.codes}}
    return release.data.attributes[name].model_copy(update=rule)


def figures(release: Release) -> dict[str, str]:
    """The true figures of every statistic, and what a key alone makes of them: other noise is drawn anew."""
    found = {}
    with checked(release) as ready, np.printoptions(threshold=sys.maxsize):
        statistics = {one.name: one for one in ready.plan.statistics}
        for name, counted in ready.tabulate(statistics):
            keyed = statistics[name].key != "" and statistics[name].guarantee.bound is None
            found[name] = repr(counted) + (repr(statistics[name].answer(counted, ready.plan.secret)) if keyed else "")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("case", [name for name in CASES if name != "jobs_sparse"])  # its rows come in any order
def test_every_kind_counts_what_is_made_like_what_is_there(tmp_path: Path, case: str) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "odd").mkdir()
    plain, other = (load(CASES[case].written(tmp_path / name)) for name in ("plain", "odd"))
    assert figures(rewritten(tmp_path / "odd", other)) == figures(plain)


RULE = 'recode = { F = ["f", "w"], M = ["m"] }'


def digest(folder: Path, rule: str) -> str:
    """The name of the question about jobs by sex, where a rule makes the sex."""
    path = CASES["jobs_individuals"].written(folder)
    text = path.read_text(encoding="utf-8").replace('sex = { codes = ["F", "M"] }', f"sex = {{ {rule} }}")
    path.write_text(text, encoding="utf-8")
    plan = check(load(path), data=False).plan
    (one,) = (one for one in plan.statistics if one.name == "laplace_sex")
    return one.digest("0")


@pytest.mark.parametrize(
    ("rule", "same"),
    [
        ('recode = { F = ["w", "f"], M = "m" }', True),
        (f'{RULE}, column = "sex"', True),
        (f'{RULE}, codes = {{ F = "Women", M = "Men" }}', True),
        (f'{RULE}, column = "gender"', False),
        ('recode = { F = ["f"], M = ["m", "w"] }', False),
        ('codes = ["F", "M"]', False),
    ],
)
def test_another_rule_is_another_question_and_another_spelling_is_not(tmp_path: Path, rule: str, same: bool) -> None:
    (tmp_path / "other").mkdir()
    assert (digest(tmp_path, RULE) == digest(tmp_path / "other", rule)) == same
