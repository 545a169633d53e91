"""Identifiers of SDMX: always valid, never taken for something else, and never two codes under one."""

import io
import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import SfumatoError
from sfumato.serve.sdmx.flow import checked_agency, code_id, component_ids, period_id
from tests.serve.sdmx_reading import code_of

IN_A_CODE = re.compile(r"[A-Za-z0-9_@$-]+")
IN_A_COMPONENT = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
codes = st.text(max_size=12) | st.from_regex(r"[-+_@]?[0-9]{1,4}([eE.][-+]?[0-9]{1,2})?", fullmatch=True)


@given(codes)
def test_a_code_can_be_had_back_from_its_identifier(code: str) -> None:
    written = code_id(code)
    assert IN_A_CODE.fullmatch(written)
    assert code_of(written) == code


@given(st.from_regex(r"[A-Za-z][A-Za-z0-9-]{1,8}", fullmatch=True))
def test_a_code_that_says_what_it_is_stays_as_it_is(code: str) -> None:
    words = {"inf", "infinity", "nan", "na", "null", "none", "true", "false"}
    assert code_id(code) == (f"_{code}" if code.lower() in words else code)


@given(st.lists(codes | st.sampled_from(["NA", "nan", "None", "TRUE", "False", "inf", "0x1F", "01"]), min_size=1))
def test_a_reader_of_csv_takes_identifiers_for_texts(some: list[str]) -> None:
    written = [code_id(code) for code in some]
    frame = pd.read_csv(io.StringIO("\n".join(["code", *written])))
    assert frame["code"].tolist() == written


@given(st.lists(st.text(min_size=1, max_size=8), max_size=6))
def test_dimensions_have_names_of_their_own(names: list[str]) -> None:
    found = component_ids(names)
    assert len(set(found)) == len(names)
    assert all(IN_A_COMPONENT.fullmatch(one) for one in found)
    assert not {"TIME_PERIOD", "OBS_VALUE", "OBS_STATUS"} & set(found)


def test_quarters_are_written_as_sdmx_does() -> None:
    assert [period_id(code) for code in ("2025-Q1", "2025Q4", "2025")] == ["2025-Q1", "2025-Q4", "2025"]


@pytest.mark.parametrize("agency", ["", "1A", "A B", "A.", "<A>", "A/../B"])
def test_an_agency_that_cannot_be_written_is_refused(agency: str) -> None:
    with pytest.raises(SfumatoError, match="agency"):
        checked_agency(agency)
