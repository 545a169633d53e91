"""The factor of an edge: one of its employers', chosen by their ids alone, whoever is named first."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare

from sfumato.errors import DataError
from sfumato.noise.factors import Rule, chosen_employers, takes_first
from sfumato.noise.keyed import Keyed, hashes

KEYED, OTHER = Keyed(key=bytes(range(16))), Keyed(key=bytes(16))
RULES: tuple[Rule, ...] = ("twelve-characters", "keyed")
IDS = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=12, max_size=12)


def chosen(first: str, second: str, rule: Rule = "twelve-characters") -> str:
    (takes,) = takes_first([first], [second], rule=rule, keyed=KEYED)
    return first if takes else second


def employer(characters: str, end: str) -> str:
    return f"4800000{characters}{end}"


@pytest.mark.parametrize(
    ("smaller", "greater"), [("00", "01"), ("19", "20"), ("09", "10"), ("9Z", "A0"), ("Zz", "aA"), (" 9", "09")]
)
def test_the_employer_with_the_smaller_eighth_and_ninth_characters_gives_the_factor(smaller: str, greater: str) -> None:
    # The rest of the ids, which order them the other way round, plays no part.
    one, other = f"9999999{smaller}999", f"0000000{greater}000"
    assert chosen(one, other) == one
    assert chosen(other, one) == one


@pytest.mark.parametrize("character", [chr(code) for code in range(32, 127)])
def test_a_tie_goes_by_the_eighth_character(character: str) -> None:
    first, second = employer(f"{character}5", "001"), employer(f"{character}5", "002")
    by_digit = dict(zip("0123456789", [first, second] * 5, strict=True))
    expected = by_digit.get(character, first if character < "0" else second)
    assert chosen(first, second) == expected
    assert chosen(second, first) == expected


def test_only_the_eighth_character_decides_a_tie_not_the_ninth() -> None:
    for ninth in "0123456789":
        assert chosen(employer(f"4{ninth}", "001"), employer(f"4{ninth}", "002")) == employer(f"4{ninth}", "001")
        assert chosen(employer(f"5{ninth}", "001"), employer(f"5{ninth}", "002")) == employer(f"5{ninth}", "002")


@pytest.mark.parametrize("rule", RULES)
@given(pairs=st.lists(st.tuples(IDS, IDS).filter(lambda pair: pair[0] != pair[1]), max_size=20))
def test_the_employer_chosen_does_not_depend_on_which_is_listed_first(rule: Rule, pairs: list[tuple[str, str]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    one = takes_first(first, second, rule=rule, keyed=KEYED)
    other = takes_first(second, first, rule=rule, keyed=KEYED)
    assert np.array_equal(one, ~other)


@given(pairs=st.lists(st.tuples(IDS, IDS), max_size=20))
def test_an_edge_is_decided_by_itself_and_not_by_its_company(pairs: list[tuple[str, str]]) -> None:
    for rule in RULES:
        together = takes_first([a for a, _ in pairs], [b for _, b in pairs], rule=rule, keyed=KEYED)
        assert [chosen(a, b, rule) for a, b in pairs] == [
            a if t else b for (a, b), t in zip(pairs, together, strict=True)
        ]


def test_ids_of_another_length_are_refused_by_number_and_none_is_quoted() -> None:
    with pytest.raises(DataError, match="2 employers whose id has another length") as refusal:
        takes_first(["12345", "480000017000", "12345"], ["480000017000"] * 2 + ["777"], rule=RULES[0], keyed=KEYED)
    assert "12345" not in str(refusal.value)
    assert "777" not in str(refusal.value)


def test_the_keyed_rule_takes_ids_of_any_length() -> None:
    assert len(takes_first(["1", "Zürich"], ["22", "x"], rule="keyed", keyed=KEYED)) == 2
    assert len(takes_first([], [], rule="keyed", keyed=KEYED)) == 0


@pytest.mark.parametrize("rule", RULES)
def test_every_kind_of_text_gives_the_same(rule: Rule) -> None:
    first = [f"{i:012d}" for i in range(0, 900_000, 1000)]
    second = first[::-1]
    expected = takes_first(first, second, rule=rule, keyed=KEYED)
    for kind in (np.array, pa.array, lambda ids: pa.chunked_array([ids[:7], ids[7:]], pa.large_string())):
        assert np.array_equal(takes_first(kind(first), kind(second), rule=rule, keyed=KEYED), expected)


def test_keyed_bits_are_fair_and_another_key_gives_unrelated_ones() -> None:
    first, second = [f"a{i}" for i in range(100_000)], [f"b{i}" for i in range(100_000)]
    bits = takes_first(first, second, rule="keyed", keyed=KEYED)
    assert binomtest(int(bits.sum()), len(bits)).pvalue > 1e-3
    agree = bits == takes_first(first, second, rule="keyed", keyed=OTHER)
    assert binomtest(int(agree.sum()), len(agree)).pvalue > 1e-3
    # One employer's edges are decided apart from each other, too.
    hub = takes_first(["hub"] * 100_000, second, rule="keyed", keyed=KEYED)
    assert binomtest(int(hub.sum()), len(hub)).pvalue > 1e-3


def test_keyed_choices_stay_as_they_are_in_every_version() -> None:
    bits = takes_first([f"{i}" for i in range(16)], [f"{i + 1}" for i in range(16)], rule="keyed", keyed=KEYED)
    assert "".join("-+"[int(bit)] for bit in bits) == "--++-+---+-+++++"


def worker_edges(pairs: int, shared: int) -> dict[str, np.ndarray]:
    pair = np.repeat(np.arange(pairs), shared)
    return {
        "pairs": pair,
        "first": hashes(f"w{i}" for i in pair),
        "second": hashes(f"v{i}" for i in pair),
        "employers": hashes(f"e{i}" for i in np.tile(np.arange(shared), pairs)),
    }


def test_each_pair_of_workers_takes_one_of_its_shared_employers_all_as_likely() -> None:
    rows = worker_edges(pairs=30_000, shared=3)
    taken = chosen_employers(**rows, keyed=KEYED).reshape(-1, 3)
    assert np.all(taken.sum(axis=1) == 1)
    assert chisquare(taken.sum(axis=0)).pvalue > 1e-3


def test_the_shared_employer_chosen_does_not_depend_on_the_order_of_rows_or_workers() -> None:
    rows = worker_edges(pairs=500, shared=3)
    expected = chosen_employers(**rows, keyed=KEYED)
    order = np.random.default_rng(1).permutation(len(expected))
    shuffled = {name: column[order] for name, column in rows.items()}
    swapped = shuffled | {"first": shuffled["second"], "second": shuffled["first"]}
    assert np.array_equal(chosen_employers(**swapped, keyed=KEYED), expected[order])
    assert not np.array_equal(chosen_employers(**rows, keyed=OTHER), expected)


def test_a_single_shared_employer_is_chosen() -> None:
    assert chosen_employers(**worker_edges(pairs=5, shared=1), keyed=KEYED).all()
    assert len(chosen_employers(**worker_edges(pairs=0, shared=1), keyed=KEYED)) == 0
