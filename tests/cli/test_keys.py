"""`sfumato keys`: fingerprints and dates are shown, and never what they stand for."""

import json
from base64 import b64encode, urlsafe_b64encode
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.keys import describe_key, read_key
from tests.cli.call import call

A, B = "1.123457", "1.237519"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    call("keys", "new", tmp_path / "office.key", "--a", A, "--b", B)
    return tmp_path / "office.key"


def forms(file: Path) -> set[str]:
    """Every key, a and b in a key file, in each form in which it could be printed."""
    found: set[str] = set()
    for generation in describe_key(file):
        secret = read_key(file, fingerprint=generation.fingerprint)
        key, whole = secret.key, int.from_bytes(secret.key, "big")
        found |= {key.hex(), key.hex().upper(), str(key), str(list(key)), str(whole)}
        found |= {key[::-1].hex(), key[:8].hex(), key[8:].hex(), str(int.from_bytes(key, "little"))}
        found |= {b64encode(key).decode().rstrip("="), urlsafe_b64encode(key).decode().rstrip("=")}
        for end in (secret.a, secret.b):
            for number in (end, end - 1, 2 - end, 1 - end):
                found |= {str(number), str(float(number)), f"{float(number):.4f}", str(int(abs(number) * 10**6))}
    return found


def test_a_new_key_shows_its_fingerprint_and_where_to_keep_it(tmp_path: Path) -> None:
    said = call("keys", "new", "office.key", cwd=tmp_path).stdout
    assert read_key(tmp_path / "office.key").fingerprint in said
    assert "Back it up" in said
    assert (tmp_path / "office.key").stat().st_mode & 0o077 == 0


def test_ends_may_be_given(file: Path) -> None:
    assert (read_key(file).a, read_key(file).b) == (Fraction(A), Fraction(B))


def test_show_lists_every_generation_with_its_date(file: Path) -> None:
    call("keys", "rotate", file, "--yes")
    generations = describe_key(file)
    text = call("keys", "show", file).stdout
    lines = [next(line for line in text.splitlines() if g.fingerprint in line) for g in generations]
    assert [f"{g.made:%Y-%m-%d %H:%M:%S}" in line for g, line in zip(generations, lines, strict=True)] == [True, True]
    assert ["in force" in line for line in lines] == [False, True]
    data = json.loads(call("keys", "show", file, "--json").stdout)
    assert data == {
        "file": str(file),
        "in_force": generations[1].fingerprint,
        "generations": [{"fingerprint": g.fingerprint, "made": g.made.isoformat()} for g in generations],
    }


@pytest.mark.slow
def test_rotate_says_what_a_new_key_means_and_asks(file: Path) -> None:
    before = file.read_bytes()
    for answer in ("n\n", "\n", ""):
        refused = call("keys", "rotate", file, typed=answer, code=1)
        assert "can average them" in refused.stdout
        assert file.read_bytes() == before
    done = call("keys", "rotate", file, typed="y\n")
    assert "A new key is in force" in done.stdout
    assert len(describe_key(file)) == 2


def test_rotate_asks_nothing_with_yes_and_cannot_ask_in_json(file: Path) -> None:
    error = json.loads(call("keys", "rotate", file, "--json", refused=True).stdout)["error"]
    assert "--yes" in error["do"]
    assert len(describe_key(file)) == 1
    data = json.loads(call("keys", "rotate", file, "--json", "--yes").stdout)
    assert data["in_force"] == read_key(file).fingerprint
    assert len(data["generations"]) == 2


def test_a_file_that_cannot_be_rotated_is_refused_before_anybody_is_asked(tmp_path: Path) -> None:
    done = call("keys", "rotate", "nowhere.key", refused=True, cwd=tmp_path)
    assert "sfumato keys new" in done.stderr
    assert "average" not in done.stdout


@pytest.mark.parametrize(
    ("ends", "rule"),
    [
        (("--a", "0.987651", "--b", "1.237519"), "a ≤ 1"),
        (("--a", "1.237519", "--b", "1.123457"), "b ≤ a"),
        (("--a", "1.123457", "--b", "2.123457"), "b ≥ 2"),
        (("--a", "1.123457", "--b", "1.23751948"), "millionths"),
        (("--a", "1.123457"), "only one"),
        (("--a", "much1.123457", "--b", "1.237519"), "a number"),
    ],
)
def test_ends_that_break_a_rule_are_refused_and_not_repeated(tmp_path: Path, ends: tuple[str, ...], rule: str) -> None:
    for form in ((), ("--json",)):
        done = call("keys", "new", "office.key", *ends, *form, refused=True, cwd=tmp_path)
        assert rule in done.stderr
        assert not any(end.removeprefix("much") in done.stdout + done.stderr for end in ends[1::2])
    assert not list(tmp_path.iterdir())


def _every_command(path: Path) -> tuple[tuple[str | Path, ...], ...]:
    return ("show", path), ("rotate", path, "--yes"), ("new", path)


@pytest.mark.slow
def test_no_output_of_any_keys_command_holds_a_secret(file: Path, tmp_path: Path) -> None:
    call("keys", "rotate", file, "--yes", "--a", "1.098761", "--b", "1.198763")
    hidden = forms(file)
    assert {A, B, "1.098761", "1.198763", "0.098761", "98761"} <= hidden
    open_to_all, damaged, edited = (tmp_path / name for name in ("open.key", "damaged.key", "edited.key"))
    open_to_all.write_bytes(file.read_bytes())
    open_to_all.chmod(0o644)
    damaged.write_bytes(file.read_bytes()[:-20])
    edited.write_bytes(file.read_bytes().replace(b"1.198763", b"1.098760"))
    for path in (damaged, edited):
        path.chmod(0o600)
    said: list[str] = []
    for form in ((), ("--json",)):
        for environment in ({}, {"SFUMATO_TRACEBACK": "1"}):
            refused: dict[str, Any] = {"code": 1} if environment else {"refused": True}  # a traceback ends with 1
            commands = [(words, refused) for bad in (open_to_all, damaged, edited) for words in _every_command(bad)]
            commands += [
                (("show", file), {}),
                (("new", file), refused),
                (("rotate", file, "--a", "1.098761"), refused if form else {"code": 1}),  # asked, and not answered
            ]
            for words, ends in commands:
                done = call("keys", *words, *form, **ends, **environment)
                said += [done.stdout, done.stderr]
        done = call("keys", "rotate", file, "--yes", *form)
        said += [done.stdout, done.stderr]
    said += [call("keys", *words, "--help").stdout for words in ((), ("new",), ("show",), ("rotate",))]
    hidden |= forms(file)
    generations = describe_key(file)
    assert all(generation.fingerprint in "".join(said) for generation in generations)
    for generation in generations:  # their digits are random, and some number by chance
        said = [text.replace(generation.fingerprint, "fingerprint") for text in said]
    # Numbers of few digits, such as the whole distance of an end in tenths, would be found anywhere.
    leaked = {form for form in hidden if len(form) > 4 for text in said if form in text}
    assert not leaked
