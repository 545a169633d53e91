"""No text of a CSV file is a formula to a spreadsheet, whatever stands before its first sign; numbers stay numbers."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.model import Column, Figures, Selection
from sfumato.serve.core.selection import everything
from sfumato.serve.formats.layout import Options
from sfumato.serve.formats.sheets import as_text, write_csv

BEFORE = st.text(st.sampled_from(" \t\r\n\v\f\x00\x1f\x7f\x85\xa0\u00ad\u200b\u200e\u202e\u2003\u2060\u3000\ufeff"))
SIGNS = st.sampled_from("=+-@\uff1d\uff0b\uff0d\uff20")


@given(before=BEFORE, sign=SIGNS, after=st.text(max_size=5))
def test_whatever_nobody_sees_before_a_formula_does_not_hide_it(before: str, sign: str, after: str) -> None:
    assert as_text(before + sign + after) == f"'{before}{sign}{after}"


@given(st.text(max_size=10))
def test_a_text_is_changed_by_an_apostrophe_before_it_or_not_at_all(text: str) -> None:
    assert as_text(text) in (text, f"'{text}")


@pytest.mark.parametrize("text", ["", "200+", "10-19", " A = B", "'=1", "a@b", "Ⅳ", "…", "(=1)"])
def test_a_text_that_is_no_formula_stays_as_it_is(text: str) -> None:
    assert as_text(text) == text


class Negative:
    """Figures below zero."""

    def is_quick(self, _selection: Selection) -> bool:
        return True

    def figures(self, selection: Selection) -> Figures:
        shape = [len(places or ()) for places in selection.places]
        values = -1.5 - np.arange(np.prod(shape, dtype=int)).reshape(shape)
        return Figures(columns=tuple(Column(values=values) for _ in selection.metrics), notes=())


def test_negative_numbers_stay_numbers_beside_texts_that_are_defused(catalogue: Catalogue) -> None:
    table = catalogue["jobs_by_place"]
    (place,) = table.dimensions
    labels = (" =1+1", "\t@SUM(A1)", *place.labels[2:])
    table = replace(table, source=Negative(), dimensions=(replace(place, labels=labels),), marks=False)
    content = write_csv(table.answer(everything(table)), Options()).decode()
    _, first, second, *_ = csv.reader(io.StringIO(content, newline=""), quoting=csv.QUOTE_NONNUMERIC)
    assert [first[0], second[0]] == ["' =1+1", "'\t@SUM(A1)"]
    assert [cell for cell in first if isinstance(cell, float)] == [-1.5] * len(table.metrics)
