"""The key file: for its owner only, never half-written, never overwritten, and silent about what it holds."""

import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.errors import KeyFileError
from sfumato.keys import Secret, describe_key, new_key, read_key, rotate_key

A, B = Fraction("1.123"), Fraction("1.237501")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "office.key"


def secrets_in(path: Path) -> list[str]:
    """Whatever in a key file must never be seen, in every form it could take."""
    generations = json.loads(path.read_text())["generations"]
    keys = [bytes.fromhex(generation["key"]) for generation in generations]
    ends = [Fraction(generation[end]) for generation in generations for end in "ab"]
    return [form for key in keys for form in (key.hex(), str(key), str(list(key)))] + [
        form for end in ends for form in (str(end), str(float(end)), str(end - 1), str(float(end - 1)))
    ]


def test_a_new_key_is_read_back(path: Path) -> None:
    made = new_key(path, a=A, b=B)
    assert read_key(path) == made
    assert (made.a, made.b) == (A, B)
    assert len(made.key) == 16


def test_only_the_owner_can_read_the_file_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        new_key(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        rotate_key(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_keys_and_ends_differ_from_file_to_file(tmp_path: Path) -> None:
    made = [new_key(tmp_path / str(number)) for number in range(50)]
    assert len({secret.key for secret in made}) == len({secret.fingerprint for secret in made}) == 50
    assert len({secret.a for secret in made}) > 10
    assert len({secret.b - secret.a for secret in made}) > 10
    assert all(Fraction("1.05") <= secret.a <= Fraction("1.15") for secret in made)
    assert all(Fraction("0.05") <= secret.b - secret.a <= Fraction("0.15") for secret in made)


@pytest.mark.parametrize(("a", "b"), [("1.000001", "1.999999"), ("1.1", "1.100001"), ("1.05", "1.5")])
def test_ends_are_kept_exactly(path: Path, a: str, b: str) -> None:
    new_key(path, a=Fraction(a), b=Fraction(b))
    assert (read_key(path).a, read_key(path).b) == (Fraction(a), Fraction(b))


@pytest.mark.parametrize(
    ("a", "b", "rule"),
    [
        ("1", "1.2", "a ≤ 1"),
        ("0.9", "1.2", "a ≤ 1"),
        ("1.2", "1.2", "b ≤ a"),
        ("1.3", "1.2", "b ≤ a"),
        ("1.2", "2", "b ≥ 2"),
        ("1.1234567", "1.2", "finer than millionths"),
        ("1.1", "4/3", "finer than millionths"),
        ("1.1", None, "only one"),
        (None, "1.1", "only one"),
    ],
)
def test_ends_out_of_order_are_refused_without_repeating_them(
    path: Path, a: str | None, b: str | None, rule: str
) -> None:
    ends = {name: Fraction(end) for name, end in (("a", a), ("b", b)) if end is not None}
    with pytest.raises(KeyFileError) as refusal:
        new_key(path, **ends)
    assert rule in refusal.value.found
    for end in ends.values():
        assert str(float(end)) not in refusal.value.found
    assert not list(path.parent.iterdir())
    new_key(path, a=A, b=B)
    before = path.read_bytes()
    with pytest.raises(KeyFileError, match=rule):
        rotate_key(path, **ends)
    assert path.read_bytes() == before


def test_a_file_that_exists_is_never_overwritten(path: Path) -> None:
    path.write_text("precious")
    with pytest.raises(KeyFileError, match="nothing yet"):
        new_key(path)
    assert path.read_text() == "precious"
    assert list(path.parent.iterdir()) == [path]


def test_of_many_that_make_the_same_file_at_the_same_time_one_succeeds(path: Path) -> None:
    def make(path: Path) -> str:
        try:
            return new_key(path).fingerprint
        except KeyFileError:
            return "refused"

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(make, [path] * 8))
    assert sorted(made) == sorted([read_key(path).fingerprint, *["refused"] * 7])


def test_of_many_that_rotate_at_the_same_time_no_key_is_lost(path: Path) -> None:
    first = new_key(path).fingerprint
    with ThreadPoolExecutor(8) as pool:
        made = [secret.fingerprint for secret in pool.map(rotate_key, [path] * 8)]
    assert sorted(g.fingerprint for g in describe_key(path)) == sorted([first, *made])


def test_rotating_puts_a_new_key_in_force_and_keeps_ends_and_earlier_keys(path: Path) -> None:
    first = new_key(path, a=A, b=B)
    second = rotate_key(path)
    third = rotate_key(path, a=Fraction("1.2"), b=Fraction("1.3"))
    assert len({first.key, second.key, third.key}) == 3
    assert (second.a, second.b) == (A, B)
    assert (third.a, third.b) == (Fraction("1.2"), Fraction("1.3"))
    assert read_key(path) == third
    for secret in (first, second, third):
        assert read_key(path, fingerprint=secret.fingerprint) == secret
    assert [g.fingerprint for g in describe_key(path)] == [s.fingerprint for s in (first, second, third)]


def test_a_key_that_is_not_in_the_file_cannot_be_had(path: Path) -> None:
    new_key(path)
    with pytest.raises(KeyFileError, match="with other fingerprints"):
        read_key(path, fingerprint="0" * 16)


def test_a_rotation_that_fails_half_way_leaves_the_old_file(path: Path) -> None:
    made = new_key(path)
    before = path.read_bytes()
    code = """
import resource, sys
from pathlib import Path
from sfumato.keys import rotate_key
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))  # as on a full disk: the first 100 bytes are written
rotate_key(Path(sys.argv[1]))
"""
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
    assert "File too large" in done.stderr
    assert path.read_bytes() == before
    assert read_key(path) == made
    assert rotate_key(path) == read_key(path)


def test_a_rotation_takes_the_place_of_the_old_file_in_one_step(path: Path) -> None:
    new_key(path)
    with path.open("rb") as opened:  # a reader that began before
        rotate_key(path)
        assert len(json.loads(opened.read())["generations"]) == 1
    assert len(describe_key(path)) == 2
    assert sorted(p.name for p in path.parent.iterdir()) == [".office.key.lock", "office.key"]


def test_a_rotation_through_a_link_changes_the_file_and_not_the_link(path: Path, tmp_path: Path) -> None:
    new_key(path)
    link = tmp_path / "link.key"
    link.symlink_to(path)
    assert rotate_key(link) == read_key(path)
    assert link.is_symlink()


def test_generations_are_dated(path: Path) -> None:
    new_key(path)
    made = describe_key(path)[0].made
    assert made.tzinfo is UTC
    assert timedelta(0) <= datetime.now(UTC) - made < timedelta(minutes=1)


def test_a_fingerprint_is_a_function_of_the_key_alone() -> None:
    one = Secret(key=bytes(16), a=A, b=B)
    assert one.fingerprint == Secret(key=bytes(16), a=Fraction("1.2"), b=Fraction("1.3")).fingerprint
    assert one.fingerprint != Secret(key=bytes(15) + b"\1", a=A, b=B).fingerprint
    assert len(bytes.fromhex(one.fingerprint)) == 8
    assert one.fingerprint not in (one.key.hex()[:16], one.key.hex()[16:])


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o644])
def test_a_file_that_others_can_use_is_refused(path: Path, mode: int) -> None:
    new_key(path)
    path.chmod(mode)
    for use in (read_key, rotate_key, describe_key):
        with pytest.raises(KeyFileError, match="chmod 600") as refusal:
            use(path)
        assert f"mode {mode:o}" in refusal.value.found
    path.chmod(0o600)
    read_key(path)


@pytest.mark.parametrize("use", [read_key, rotate_key, describe_key])
def test_a_missing_file_says_how_to_make_one(path: Path, use: object) -> None:
    with pytest.raises(KeyFileError, match="sfumato keys new"):
        use(path)
    with pytest.raises(KeyFileError, match="a folder"):
        use(path.parent)
    assert not list(path.parent.iterdir())


def damaged(path: Path) -> dict[str, bytes]:
    """A key file with a, b and key changed, cut off or taken away in every way we can think of."""
    whole = json.loads(path.read_text())
    changed: dict[str, object] = {
        "no generation": whole | {"generations": []},
        "another format": whole | {"format": 2},
        "no object": [],
        "a list of words": whole | {"generations": ["word"]},
    }
    kept = whole["generations"][0]
    for name, value in kept.items():
        last = "0" if value[-1] != "0" else "1"
        changed[f"{name} with another digit"] = whole | {"generations": [kept | {name: value[:-1] + last}]}
        changed[f"{name} cut off"] = whole | {"generations": [kept | {name: value[:-1]}]}
        changed[f"{name} as a number"] = whole | {"generations": [kept | {name: 1.5}]}
        changed[f"no {name}"] = whole | {"generations": [{n: v for n, v in kept.items() if n != name}]}
    contents = {name: json.dumps(content).encode() for name, content in changed.items()}
    return contents | {"half": path.read_bytes()[:150], "empty": b"", "binary": b"\xff\xfe\0" + path.read_bytes()}


def test_damage_of_any_kind_is_noticed_and_nothing_of_the_content_is_said(path: Path) -> None:
    new_key(path, a=A, b=B)
    hidden = secrets_in(path)
    for what, content in damaged(path).items():
        path.write_bytes(content)
        for use in (read_key, rotate_key, describe_key):
            with pytest.raises(KeyFileError) as refusal:
                use(path)
            assert "backup" in refusal.value.do, what
            assert not any(secret in str(refusal.value) for secret in hidden), what
            assert refusal.value.__context__ is None, "another error could quote the content"
        assert path.read_bytes() == content


def test_the_secrets_are_in_no_text(path: Path) -> None:
    made = new_key(path, a=A, b=B)
    texts = [repr(made), str(made), made.fingerprint, repr(describe_key(path)), repr(rotate_key(path))]
    assert repr(made) == "Secret()"
    assert not any(secret in text for secret in secrets_in(path) for text in texts)


def test_a_secret_out_of_range_is_refused_without_repeating_it() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        Secret(key=b"short", a=A, b=B)
    with pytest.raises(ValueError, match="b ≤ a") as refusal:
        Secret(key=bytes(16), a=B, b=A)
    assert "1.1" not in str(refusal.value)


def test_reading_a_key_loads_nothing_heavy() -> None:
    code = "import sys, sfumato.keys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pyarrow", "pydantic", "cryptography", "duckdb"} & set(loaded)
