"""Tables and codes are found by titles, labels, codes, synonyms, and by words that are nearly right."""

import pytest

from sfumato.serve.page.language import ENGLISH, languages
from sfumato.serve.page.search import WordIndex, index_of_tables, matching
from tests.serve.page.made import dimension, table

PLACES = dimension("place", ("0100", "0200"), labels=("Zürich, Stadt", "Upper Ford"))
JOBS = table(PLACES)


def index() -> WordIndex:
    found = index_of_tables([JOBS])
    found.add(1, "Turnover by industry")
    found.add_owned(1, "Industry: Mining", "B", "Mining of coal")
    found.add(2, "Moves of workers")
    return found


@pytest.mark.parametrize(
    ("words", "places"),
    [
        ("turnover", (1,)),
        ("TURN industry", (1,)),
        ("0200", (0,)),
        ("zurich", (0,)),
        ("mining", (1,)),
        ("ining", ()),  # codes count by how their words begin
        ("turnover workers", ()),
        ("turnovr", (1,)),
        ("trunover", (1,)),
        ("industy miming", (1,)),
        ("tur", (1,)),
        ("", ()),
    ],
)
def test_words_find_what_has_all_of_them(words: str, places: tuple[int, ...]) -> None:
    assert index().find(words).places == places


def test_synonyms_are_found_after_what_has_the_word_itself() -> None:
    assert index().find("sales", ENGLISH.synonyms).places == (1,)
    assert index().find("workers", ENGLISH.synonyms).places == (2, 0)
    assert index().find("Umsatz", languages()["de"].synonyms).places == (1,)


def test_it_is_said_what_was_read_instead_and_where_a_code_was_found() -> None:
    assert index().find("turnovr").instead == "turnover"
    assert index().find("turnover").instead == ""
    assert index().find("minin").where == {1: "Industry: Mining"}


def test_codes_are_found_by_near_words_only_where_nothing_has_the_words() -> None:
    assert matching(PLACES, "ford") == ([1], False)
    assert matching(PLACES, "uper frod") == ([1], True)
    assert matching(PLACES, "nowhere") == ([], False)
    assert matching(PLACES, "") == ([0, 1], False)
