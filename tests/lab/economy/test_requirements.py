"""A survey of requirements has what a cube must cope with: two stages, replicate weights, and mostly empty cells."""

import csv
import hashlib
import json
import tomllib
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import contingency

from sfumato.bundle.read import open_cube
from sfumato.errors import DataError, SfumatoError
from sfumato.frame.codelists import Codelist
from sfumato.frame.records import Microdata, Replicates
from sfumato.release import load
from sfumato.running import run
from sfumato_lab.economy.requirements.design import WORKERS, draw_design
from sfumato_lab.economy.requirements.draws import FEWEST_JOBS, MOST_DAYS, MOST_JOBS, NAMES, WEIGHT_DIGITS
from sfumato_lab.economy.requirements.generate import CHUNK, FEWEST, RequirementsSurvey, generate_requirements
from sfumato_lab.economy.requirements.occupations import GROUPS, OCCUPATION
from sfumato_lab.economy.requirements.shape import CUBES, measure_requirements
from sfumato_lab.economy.requirements.variables import EDUCATION, VARIABLES
from tests.cli.call import call
from tests.lab.economy.memory import peak

QUOTES = 60_007  # two chunks of establishments, the second one cut short


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> RequirementsSurvey:
    return generate_requirements(tmp_path_factory.mktemp("requirements"), quotes=QUOTES)


@pytest.fixture(scope="module")
def query(small: RequirementsSurvey):
    connection = duckdb.connect()
    connection.execute(f"create view quotes as select * from read_parquet('{small.folder / 'quotes.parquet'}')")
    yield lambda sql: connection.execute(sql).fetchall()
    connection.close()


def digests(made: RequirementsSurvey) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made.paths}


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_keys_are_unique_and_the_file_has_the_rows_it_says(query, small: RequirementsSurvey) -> None:
    assert query("select count(*), count(distinct quote), min(quote), max(quote) from quotes") == [
        (QUOTES, QUOTES, 1, QUOTES)
    ]
    assert query("select count(distinct establishment) from quotes") == [(small.establishments,)]
    assert small.establishments > CHUNK
    types = {field.name: str(field.type) for field in pq.read_schema(small.folder / "quotes.parquet")}
    assert [types[name] for name in ("quote", "establishment", "prep_days", "weight", "rw_80")] == [
        "int64",
        "int64",
        "int64",
        "double",
        "double",
    ]


def test_an_establishment_has_four_to_eight_quotes_in_one_stratum_at_one_weight(query) -> None:
    ((fewest, most, values, one_value),) = query(
        """select min(quotes), max(quotes), count(distinct quotes), bool_and(one)
           from (select count(*) as quotes, count(distinct (stratum, industry, ownership, size, weight)) = 1 as one
                 from quotes group by establishment)"""
    )
    assert (fewest, most, values, one_value) == (FEWEST_JOBS, MOST_JOBS, 5, True)


def test_a_stratum_is_an_industry_and_a_size_or_those_taken_for_sure(query) -> None:
    assert query(
        """select count(*) from quotes
           where stratum <> industry || '/' || size and (stratum <> industry || '/sure' or size <> '500+')"""
    ) == [(0,)]
    assert query("select count(distinct stratum) from quotes") == [(100,)]
    assert query("select count(distinct establishment) from quotes where stratum like '%/sure'") == [(40,)]


def test_codes_are_those_of_the_codelists(query, small: RequirementsSurvey) -> None:
    expected = {"major_group": 22, "industry": 20, "ownership": 3, "size": 4, "stratum": 100}
    expected |= {variable.name: len(variable.cuts) + 1 for variable in VARIABLES}
    for name, number in expected.items():
        codes = Codelist.read(small.folder / "codelists" / f"{name}.csv").codes
        assert {code for (code,) in query(f"select distinct {name} from quotes")} == set(codes)
        assert len(codes) == number


def test_occupations_have_six_digits_under_a_major_group_that_every_quote_names(query, small) -> None:
    with (small.folder / "codelists" / "occupation.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len({row["code"] for row in rows}) == 800
    labels = {group.code: group.label for group in GROUPS}
    for row in rows:
        assert len(row["code"]) == 6
        assert row["code"].isdigit()
        assert (row["major_group"], row["minor_group"]) == (row["code"][:2], row["code"][:4])
        assert row["major_group_label"] == labels[row["major_group"]]
    assert {row["major_group"] for row in rows} == set(labels)
    assert query("select count(*) from quotes where major_group <> occupation[:2]") == [(0,)]


def test_frequencies_of_occupations_are_like_those_of_zipf(query) -> None:
    counts = np.array([n for (n,) in query("select count(*) as n from quotes group by occupation order by n desc")])
    assert 650 < len(counts) < 800
    rank = np.arange(1, len(counts) + 1)
    slope, _ = np.polyfit(np.log(rank[10:400]), np.log(counts[10:400]), 1)
    assert -1.6 < slope < -0.8
    assert counts[0] > 0.02 * QUOTES
    assert np.count_nonzero(counts <= 3) > 50


def test_some_occupations_exist_in_one_establishment_only(query, small: RequirementsSurvey) -> None:
    exclusive = [OCCUPATION.codes[number] for number in draw_design(small.seed).exclusive]
    assert len(set(exclusive)) == 20
    found = query(
        f"""select count(distinct establishment), count(*), bool_and(stratum like '%/sure')
            from quotes where occupation in ({", ".join(f"'{code}'" for code in exclusive)}) group by occupation"""
    )
    assert found == [(1, 3, True)] * 20


def test_weights_are_positive_with_four_digits_and_stand_for_all_workers(query) -> None:
    ((least, odd, mean, median, high, most, total),) = query(
        f"""select min(weight), count(*) filter (weight <> round(weight, {WEIGHT_DIGITS})), avg(weight), median(weight),
                   quantile_cont(weight, 0.999), max(weight), sum(weight)
            from quotes"""
    )
    assert least > 0
    assert odd == 0
    assert total == pytest.approx(WORKERS, rel=0.03)
    # A heavy right tail.
    assert mean > 1.2 * median
    assert high > 6 * mean
    assert most > 15 * mean


def test_requirements_follow_the_occupation_and_exclude_each_other(query) -> None:
    assert query("select count(*) from quotes where heights = 'yes' and climbing = 'no'") == [(0,)]
    assert query(
        """select count(*) from quotes
           where telework = 'yes' and (strength not in ('sedentary', 'light') or keyboarding = 'seldom')"""
    ) == [(0,)]
    for variable in VARIABLES:
        ((share, commonest),) = query(
            f"""select sum(most) / sum(quotes), (select max(n) / sum(n) from
                       (select count(*) as n from quotes group by {variable.name}))
                from (select max(n) as most, sum(n) as quotes
                      from (select occupation, count(*) as n from quotes group by occupation, {variable.name})
                      group by occupation)"""
        )
        # Guessing the commonest category of the occupation is right far more often than that of all jobs.
        assert (1 - share) < 0.75 * (1 - commonest)
        assert share < 0.99


def test_days_of_preparation_are_whole_and_rise_with_education(query) -> None:
    ((least, most, none),) = query("select min(prep_days), max(prep_days), avg((prep_days = 0)::int) from quotes")
    assert (least, most) == (0, MOST_DAYS)
    assert 0.05 < none < 0.2
    means = dict(query("select education, avg(prep_days) from quotes group by education"))
    by_education = [means[code] for code in EDUCATION.codelist.codes]
    assert by_education == sorted(by_education)
    assert by_education[-1] > 50 * by_education[0]


def test_replicate_weights_have_the_weight_as_their_mean(small: RequirementsSurvey) -> None:
    table = pq.read_table(small.folder / "quotes.parquet", columns=["weight", *NAMES])
    weight = table["weight"].to_numpy()
    replicates = np.column_stack([table[name].to_numpy() for name in NAMES])
    np.testing.assert_allclose(replicates.mean(axis=1), weight, rtol=1e-12)
    factors, counts = np.unique(np.round(replicates / weight[:, None], 9), return_counts=True)
    np.testing.assert_allclose(factors, [1 - 2**-0.5, 1, 1 + 2**-0.5], atol=1e-8)
    assert counts.tolist() == [20 * QUOTES, 40 * QUOTES, 20 * QUOTES]
    np.testing.assert_allclose(replicates.sum(axis=0), weight.sum(), rtol=0.05)
    assert not np.any(np.all(replicates == weight[:, None], axis=0))


def test_quotes_of_an_establishment_vary_together_unless_it_was_taken_for_sure(query) -> None:
    factors = ", ".join(f"round({name} / weight, 6)" for name in NAMES)
    found = query(
        f"""select sure, max(patterns), min(quotes - patterns) from (
                select stratum like '%/sure' as sure, count(*) as quotes, count(distinct ({factors})) as patterns
                from quotes group by establishment, sure)
            group by sure order by sure"""
    )
    assert found == [(False, 1, FEWEST_JOBS - 1), (True, MOST_JOBS, 0)]


def test_the_measured_shape_is_that_of_the_quotes(query, small: RequirementsSurvey) -> None:
    shape = measure_requirements(small.folder)
    assert (shape.quotes, shape.establishments, shape.sure) == (QUOTES, small.establishments, 40)
    cube = next(cube for cube in shape.cubes if cube.words == "ten requirements, as in the paper")
    counts = [n for *_, n in query(f"select {', '.join(CUBES[cube.words])}, count(*) from quotes group by all")]
    assert (cube.cells, cube.filled, cube.uniques) == (17_280, len(counts), counts.count(1))
    assert 0.85 < cube.empty < 0.99
    assert [cube.empty > 0.99 for cube in shape.cubes if cube.cells > 1_000_000] == [True, True]
    assert shape.of_one > shape.several_of_one >= 20


def test_cramers_v_is_that_of_scipy_and_strong_where_it_should_be(query, small: RequirementsSurvey) -> None:
    associations = measure_requirements(small.folder).associations
    measured = {(first, second): v for first, second, v in associations}
    for first, second in (("education", "credentials"), ("strength", "keyboarding"), ("ownership", "driving")):
        table: dict[tuple[str, str], int] = {
            (a, b): n for a, b, n in query(f"select {first}, {second}, count(*) from quotes group by all")
        }
        rows, columns = ({key[axis] for key in table} for axis in (0, 1))
        counts = np.array([[table.get((a, b), 0) for b in columns] for a in rows])
        assert measured[first, second] == pytest.approx(contingency.association(counts, method="cramer"))
    assert measured["occupation", "strength"] > 0.6
    assert measured["keyboarding", "telework"] > 0.4
    assert measured["ownership", "driving"] < 0.1


def test_the_design_effect_is_the_variance_of_the_mean_beside_that_of_a_random_sample(small) -> None:
    table = pq.read_table(small.folder / "quotes.parquet", columns=["prep_days", "weight", *NAMES])
    y, weight = (table[name].to_numpy() for name in ("prep_days", "weight"))
    mean = np.average(y, weights=weight)
    replicated = np.array([np.average(y, weights=table[name].to_numpy()) for name in NAMES])
    variance = 4 / 80 * np.sum((replicated - mean) ** 2)
    of_random_sample = np.average((y - mean) ** 2, weights=weight) / QUOTES
    measured = next(e for e in measure_requirements(small.folder).effects if "preparation" in e.words)
    assert measured.estimate == pytest.approx(mean)
    assert measured.error**2 == pytest.approx(variance)
    assert measured.effect == pytest.approx(variance / of_random_sample)
    assert 1.3 < measured.effect < 6


def test_the_same_seed_gives_the_same_files_and_another_one_other_quotes(tmp_path: Path) -> None:
    first, again, other = (
        digests(generate_requirements(tmp_path / name, quotes=3_000, seed=seed))
        for name, seed in (("first", 7), ("again", 7), ("other", 8))
    )
    assert first == again
    assert {name for name in first if first[name] != other[name]} == {"quotes.parquet"}


def test_leaving_out_replicate_weights_changes_nothing_else(tmp_path: Path) -> None:
    with_them = generate_requirements(tmp_path / "with", quotes=2_000)
    without = generate_requirements(tmp_path / "without", quotes=2_000, replicates=False)
    full, bare = (pq.read_table(made.folder / "quotes.parquet") for made in (with_them, without))
    assert full.drop_columns(list(NAMES)).equals(bare)
    assert (with_them.replicates, without.replicates) == (True, False)
    assert measure_requirements(without.folder).effects == ()


@pytest.mark.parametrize("replicates", [True, False])
def test_the_data_section_of_the_release_file_describes_the_quotes(tmp_path: Path, replicates: bool) -> None:
    made = generate_requirements(tmp_path, quotes=1_000, replicates=replicates)
    release = tomllib.loads(made.release.read_text(encoding="utf-8"))
    data = Microdata.model_validate({**release["data"], "folder": tmp_path})
    columns = pq.read_schema(tmp_path / data.records.path).names
    described = [*data.units, data.records.weight, *data.attributes, *data.measures]
    assert sorted(described) == sorted(name for name in columns if name not in NAMES)
    assert data.units == ("quote", "establishment")
    if replicates:
        assert data.records.replicates == Replicates(columns="rw_*", rule="successive-difference")
        assert [name for name in columns if name.startswith("rw_")] == list(NAMES)
    else:
        assert data.records.replicates is None
    for name in data.attributes:
        assert 2 <= len(data.declared_codes(name).codes) <= 800


@pytest.mark.slow
@pytest.mark.parametrize("replicates", [True, False])
def test_the_release_file_publishes_a_cube_within_its_budget(tmp_path: Path, replicates: bool) -> None:
    made = generate_requirements(tmp_path, quotes=1_000, replicates=replicates)
    published = run(load(made.release))
    assert published.charged == ("requirements",)
    assert published.balance.remaining_epsilon == 0
    cube = open_cube(published.bundle, "requirements")
    assert len(cube.cube) == 240_000
    answer = cube.means("prep_days", ["education"])
    assert (answer.sampling_error is not None) == replicates
    assert "postgraduate" in answer.to_arrow()["education"].to_pylist()


def test_the_smallest_survey_has_every_kind_of_row(tmp_path: Path) -> None:
    made = generate_requirements(tmp_path, quotes=FEWEST, seed=3)
    shape = measure_requirements(made.folder)
    assert (shape.quotes, shape.sure) == (FEWEST, 0)
    assert shape.of_one > 20
    assert shape.workers == pytest.approx(WORKERS, rel=0.2)
    assert len(shape.effects) == 3


def test_progress_rises_to_all_quotes(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    generate_requirements(
        tmp_path, quotes=QUOTES, replicates=False, progress=lambda done, total: told.append((done, total))
    )
    assert [total for _, total in told] == [QUOTES, QUOTES]
    assert 0 < told[0][0] < told[1][0] == QUOTES


def test_a_survey_is_not_overwritten_unasked_and_a_failure_keeps_it(tmp_path: Path) -> None:
    made = generate_requirements(tmp_path, quotes=1_000)
    before = digests(made)
    with pytest.raises(SfumatoError, match="a folder without an economy"):
        generate_requirements(tmp_path, quotes=1_000, seed=2)
    with pytest.raises(KeyboardInterrupt):
        generate_requirements(tmp_path, quotes=1_000, seed=2, overwrite=True, progress=interrupt)
    assert digests(made) == before
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(made.paths)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"quotes": 999}, "1,000 to 5,000,000"), ({"quotes": 10**7}, "10,000,000"), ({"seed": -1}, "seed")],
)
def test_a_request_out_of_range_is_refused_before_anything_is_written(
    tmp_path: Path, wrong: dict[str, int], words: str
) -> None:
    with pytest.raises(SfumatoError, match=words):
        generate_requirements(tmp_path / "new", **wrong)
    assert not (tmp_path / "new").exists()


def test_a_folder_without_a_survey_has_no_shape(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"quotes\.parquet"):
        measure_requirements(tmp_path)


@pytest.mark.slow
def test_the_command_makes_a_survey_and_shows_its_shape(tmp_path: Path) -> None:
    words = ("economy", "requirements", "survey", "--quotes", "1000", "--shape", "--json")
    made = json.loads(call(*words, cwd=tmp_path).stdout)
    assert (made["quotes"], made["replicates"], made["seed"]) == (1_000, True, 1)
    assert {"quantity": "quotes", "here": "1,000"} in made["shape"]
    assert "1,000 quotes" in call("economy", "requirements", "another", "--quotes", "1000", cwd=tmp_path).stdout


MADE = """
from pathlib import Path
from sfumato_lab.economy.requirements.generate import generate_requirements
generate_requirements(Path(sys.argv[1]), quotes=int(sys.argv[2]), replicates=False)
"""


@pytest.mark.slow
def test_memory_grows_by_far_less_than_the_quotes(tmp_path: Path) -> None:
    few, many = 200_000, 2_000_000
    peaks = [peak(MADE, tmp_path / str(count), count)[1] for count in (few, many)]
    three_columns = (many - few) * 3 * 8
    assert peaks[1] - peaks[0] < three_columns
