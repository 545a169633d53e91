"""Errors after agreement, foreseen from public numbers: the algebra is that of `reconcile`, on fewer cells."""

import numpy as np
import pytest

from sfumato.agree.expected_errors import AgreementModel, agreement_model
from sfumato.agree.published import usual_error
from sfumato.agree.reconcile import Protected, reconcile
from sfumato.arrays import Floats
from sfumato.cells import Cells, Dimension
from sfumato.method import PlannedError

PLACE, INDUSTRY, SEX = (
    Dimension(name="place", codes=tuple(f"p{at}" for at in range(6))),
    Dimension(name="industry", codes=("a", "b", "c")),
    Dimension(name="sex", codes=("F", "M"), public=False),
)
TABLES = {"fine": (PLACE, INDUSTRY), "place": (PLACE,), "industry": (INDUSTRY,), "sex": (PLACE, SEX)}
PLANNED = [
    PlannedError(floor=1.0, floor_size=10, share=share, of="its largest establishment")
    for share in (0.2, 0.05, 0.03, 0.1)
]


def register(places: int = 6, industries: int = 3, *, seed: int = 4) -> Cells:
    """Establishments in most combinations: few in many, many in some."""
    drawn = np.random.Generator(np.random.Philox(seed))
    sizes = np.exp(drawn.normal(0.0, 1.2, (places, 1)) + drawn.normal(0.0, 1.0, (places, industries)))
    number = np.floor(4 * sizes).astype(np.int64)
    positions = np.flatnonzero(number)
    dimensions = (
        Dimension(name="place", codes=tuple(map(str, range(places)))),
        Dimension(name="industry", codes=tuple(map(str, range(industries)))),
    )
    return Cells(dimensions=dimensions, positions=positions, columns={"establishments": number.ravel()[positions]})


def seen(known: Cells | None, most: int = 10_000, **tables: tuple[Dimension, ...]) -> AgreementModel:
    return agreement_model(tables, known, taken=dict.fromkeys(tables, 1), workers=20.0, most=most)


def test_agreed_values_are_those_of_reconcile() -> None:
    levels = seen(register(), **TABLES)
    errors = [usual_error(plan, level.establishments)[np.argsort(level.place)] for plan, level in
              zip(PLANNED, levels.levels, strict=True)]  # fmt: skip
    variances = np.concatenate([level.weighed(plan)[0] for plan, level in zip(PLANNED, levels.levels, strict=True)])
    agreed = levels.covariance(1 / variances) / variances
    np.testing.assert_allclose(np.sqrt(variances), np.concatenate(errors))
    for place in range(0, len(variances), 5):
        unit = np.zeros(len(variances), dtype=np.int64)
        unit[place] = 1_000_000
        cells = {
            level.name: Protected(cells=level.cells.with_column("value", unit[span]), errors=error)
            for level, span, error in zip(levels.levels, levels.spans, errors, strict=True)
        }
        expected = np.concatenate(list(reconcile(cells).values())) / 1_000_000
        np.testing.assert_allclose(agreed[:, place], expected, atol=1e-5)


def errors_of(levels: AgreementModel, planned: list[PlannedError | None]) -> Floats:
    return levels.errors(planned, [np.ones(len(level.times), dtype=bool) for level in levels.levels])


@pytest.mark.parametrize("left_out", [None, "place", "industry"])
def test_errors_hardly_change_when_codes_are_put_together(left_out: str | None) -> None:
    known = register(80, 8)
    place, industry = known.dimensions
    tables = {"fine": (place, industry), "place": (place,), "industry": (industry,)}
    planned = [None if name == left_out else plan for name, plan in zip(tables, PLANNED, strict=False)]
    whole, folded = (errors_of(seen(known, most, **tables), planned) for most in (10_000, 120))
    np.testing.assert_allclose(folded, whole, rtol=0.15)


def test_a_table_that_nothing_measured_tells_has_no_error_to_speak_of() -> None:
    levels = seen(register(), **TABLES)
    unknown = errors_of(levels, [None, None, PLANNED[2], PLANNED[3]])
    known = errors_of(levels, [PLANNED[0], None, PLANNED[2], PLANNED[3]])
    assert unknown[0] > 1000 * known[0]
    assert unknown[1] == pytest.approx(known[1], rel=0.5)  # place × sex adds up to it


def test_more_noise_in_any_table_makes_none_more_exact_where_one_is_the_sum_of_the_other() -> None:
    levels = seen(register(), fine=TABLES["fine"], place=TABLES["place"])
    less, more = (
        errors_of(levels, [PlannedError(floor=1.0, floor_size=10, share=share), None]) for share in (0.1, 0.2)
    )
    assert (more > less).all()


def test_without_a_register_all_cells_of_a_table_are_alike() -> None:
    levels = seen(None, **TABLES)
    assert [float(level.times.sum()) for level in levels.levels] == [18, 6, 3, 12]
    assert all(len(set(level.establishments.tolist())) == 1 for level in levels.levels)


def with_counties(known: Cells, counties: int) -> tuple[Cells, Dimension]:
    """The register by county too: every place lies in one."""
    place, industry = known.dimensions
    county = Dimension(name="county", codes=tuple(map(str, range(counties))))
    positions = (known.codes("place") * counties + known.codes("place") % counties) * len(industry)
    dimensions = (place, county, industry)
    columns = {"establishments": known["establishments"]}
    return Cells(dimensions=dimensions, positions=positions + known.codes("industry"), columns=columns), county


@pytest.mark.parametrize("left_out", [None, "county", "fine"])
def test_levels_of_an_attribute_lie_in_each_other_also_where_codes_are_put_together(left_out: str | None) -> None:
    known, county = with_counties(register(80, 8), 9)
    place, _, industry = known.dimensions
    tables = {"fine": (place, industry), "counties": (county, industry), "county": (county,), "place": (place,)}
    planned = [None if name == left_out else plan for name, plan in zip(tables, PLANNED, strict=True)]
    whole, folded = (errors_of(seen(known, most, **tables), planned) for most in (10_000, 200))
    if left_out == "fine":
        assert whole[0] > 1000 * whole[1], "nothing tells the finest cells"
        whole, folded = whole[1:], folded[1:]
    np.testing.assert_allclose(folded, whole, rtol=0.25)


def test_a_county_is_as_exact_as_its_places_make_it() -> None:
    """Measured by places alone, counties have the errors that the sums of their places have."""
    known, county = with_counties(register(80, 8), 9)
    place, _, industry = known.dimensions
    levels = seen(known, fine=(place, industry), county=(county,))
    agreed = errors_of(levels, [PLANNED[0], None])[1]
    fine = levels.levels[0]
    noise = fine.squares(PLANNED[0], levels.workers)[1].sum()
    assert 0.3 * np.sqrt(noise / len(county)) < agreed < np.sqrt(noise / len(county))
