"""The key file: the secrets from which every permanent factor is computed, kept by their owner alone."""

import json
import re
import secrets
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import blake2b
from os import fstat
from pathlib import Path

from sfumato.durable import alone, write_durably
from sfumato.errors import KeyFileError
from sfumato.paths import described

KEY_BYTES = 16
_MILLION = 1_000_000
_FORMAT = 1
_NOTE = "Secret. Whoever can read this file can undo the protection of every table made with it. See docs/keys.md."


@dataclass(frozen=True, kw_only=True)
class Secret:
    """A key and the ends a, b of the distribution of factors, 1 < a < b < 2; none is ever shown.

    Factors lie in [2 − b, 2 − a] and [a, b]. Only the fingerprint may leave the office.

    >>> secret = Secret(key=bytes(16), a=Fraction("1.2"), b=Fraction("1.3"))
    >>> secret, secret.fingerprint
    (Secret(), '073aa6cd5938f024')
    """

    key: bytes = field(repr=False)
    a: Fraction = field(repr=False)
    b: Fraction = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES:
            raise ValueError(f"the key must have {KEY_BYTES} bytes")
        if broken := _broken_rule(self.a, self.b):
            raise ValueError(f"1 < a < b < 2 is needed in whole millionths, not {broken}")

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that tell keys apart and reveal nothing of a key, nor of a and b."""
        return blake2b(self.key, digest_size=8, person=b"fingerprint").hexdigest()


@dataclass(frozen=True, kw_only=True)
class Generation:
    """What may be known of a key in the file: its fingerprint and when it was made."""

    fingerprint: str
    made: datetime


@dataclass(frozen=True, kw_only=True)
class _Kept:
    secret: Secret
    made: datetime

    def content(self) -> dict[str, str]:
        fields = {
            "key": self.secret.key.hex(),
            "made": self.made.isoformat(),
            "a": _text(self.secret.a),
            "b": _text(self.secret.b),
        }
        return fields | {"check": _check(fields)}


def new_key(path: Path, *, a: Fraction | None = None, b: Fraction | None = None) -> Secret:
    """Make a key file with a random key; a and b too are drawn at random unless both are given."""
    ends = _given(path, a, b) or _drawn_ends()
    _refuse_existing(path)  # before anything is left beside it
    path.parent.mkdir(parents=True, exist_ok=True)
    with alone(_lock(path)):
        _refuse_existing(path)
        return _add(path, (), *ends)


def read_key(path: Path, *, fingerprint: str | None = None) -> Secret:
    """The secret in force, which is the last one, or an earlier one by its fingerprint."""
    kept = _read(path)
    if fingerprint is None:
        return kept[-1].secret
    found = [generation.secret for generation in kept if generation.secret.fingerprint == fingerprint]
    if not found:
        raise KeyFileError(
            f"key file {path}",
            expected=f"a key with the fingerprint {fingerprint}",
            found=f"{len(kept)} with other fingerprints",
            do="see which there are with sfumato keys show, and look for the file this key was made in",
        )
    return found[-1]


def rotate_key(path: Path, *, a: Fraction | None = None, b: Fraction | None = None) -> Secret:
    """Put a new random key in force; a and b stay unless both are given, and earlier keys stay in the file."""
    given = _given(path, a, b)
    _read(path)  # before a lock is left beside something else
    with alone(_lock(path)):
        kept = _read(path)
        return _add(path, kept, *(given or (kept[-1].secret.a, kept[-1].secret.b)))


def describe_key(path: Path) -> tuple[Generation, ...]:
    """Fingerprint and date of every key in the file, the one in force last."""
    return tuple(Generation(fingerprint=k.secret.fingerprint, made=k.made) for k in _read(path))


def _add(path: Path, kept: Sequence[_Kept], a: Fraction, b: Fraction) -> Secret:
    secret = Secret(key=secrets.token_bytes(KEY_BYTES), a=a, b=b)
    generations = [*kept, _Kept(secret=secret, made=datetime.now(UTC).replace(microsecond=0))]
    content = {"note": _NOTE, "format": _FORMAT, "generations": [generation.content() for generation in generations]}
    # The new file has mode 0600 and takes the place of the old one in a single step, also where a link leads to it.
    write_durably(path.resolve(), json.dumps(content, indent=2).encode() + b"\n")
    return secret


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise KeyFileError(
            f"key file {path}",
            expected="a path where there is nothing yet",
            found="a folder" if path.is_dir() else "a file",
            do="choose another path, or use sfumato keys rotate to put a new key in a key file",
        )


def _read(path: Path) -> tuple[_Kept, ...]:
    if not path.is_file():
        raise KeyFileError(
            f"key file {path}",
            expected="a key file",
            found=described(path),
            do=f"make one with sfumato keys new {path}, or restore it from its backup if there was one",
        )
    if path.suffix == ".toml" or described(path).startswith("a d"):
        raise KeyFileError(
            f"key file {path}",
            expected="a key file",
            found=described(path),
            do="name the key file, which a release file has under [release] as `key`",
        )
    with path.open("rb") as file:
        mode = stat.S_IMODE(fstat(file.fileno()).st_mode)
        if mode & 0o077:
            raise KeyFileError(
                f"key file {path}",
                expected="a file that only its owner can read or write (mode 600)",
                found=f"mode {mode:o}",
                do=f"chmod 600 {path}, and sfumato keys rotate if somebody may have read it",
            )
        content = file.read()
    try:
        kept = _parsed(content)
    except (ValueError, KeyError, TypeError):
        kept = ()
    if not kept:  # raised here and not above, since the other error may quote what it could not read
        raise KeyFileError(
            f"key file {path}",
            expected="a key file as sfumato keys new and rotate write it",
            found="something else, or a file that was damaged or edited",
            do="restore it from its backup; without one see docs/keys.md, When the key is lost",
        )
    return kept


def _parsed(content: bytes) -> tuple[_Kept, ...]:
    whole = json.loads(content)
    if whole["format"] != _FORMAT:
        raise ValueError("another format")
    return tuple(map(_generation, whole["generations"]))


def _generation(given: dict[str, str]) -> _Kept:
    fields = dict(given)
    if fields.pop("check") != _check(fields):
        raise ValueError("damaged")
    made = datetime.fromisoformat(fields["made"])
    if made.tzinfo is None or not all(re.fullmatch(r"1\.[0-9]{1,6}", fields[end]) for end in "ab"):
        raise ValueError("damaged")
    secret = Secret(key=bytes.fromhex(fields["key"]), a=Fraction(fields["a"]), b=Fraction(fields["b"]))
    return _Kept(secret=secret, made=made)


def _check(fields: dict[str, str]) -> str:
    """A digest that a damaged generation does not match: a wrong digit would silently change every factor."""
    return blake2b(json.dumps(fields, sort_keys=True).encode(), digest_size=8, person=b"check").hexdigest()


def _given(path: Path, a: Fraction | None, b: Fraction | None) -> tuple[Fraction, Fraction] | None:
    if a is None and b is None:
        return None
    if a is not None and b is not None and (broken := _broken_rule(a, b)) is None:
        return a, b
    raise KeyFileError(
        f"key file {path}",
        expected="both a and b with 1 < a < b < 2, in whole millionths, or neither",
        found="only one of them" if a is None or b is None else str(broken),
        do="correct them, or leave both out: nobody needs to know them",
    )


def _broken_rule(a: Fraction, b: Fraction) -> str | None:
    rules = {
        "an end finer than millionths": all((end * _MILLION).denominator == 1 for end in (a, b)),
        "a ≤ 1": a > 1,
        "b ≤ a": b > a,
        "b ≥ 2": b < 2,
    }
    return next((words for words, kept in rules.items() if not kept), None)


def _drawn_ends() -> tuple[Fraction, Fraction]:
    """Ends that nobody knows: a from 1.05 to 1.15 and b from 0.05 to 0.15 above it, in thousandths."""
    a = 1050 + secrets.randbelow(101)
    return Fraction(a, 1000), Fraction(a + 50 + secrets.randbelow(101), 1000)


def _text(end: Fraction) -> str:
    return f"1.{int((end - 1) * _MILLION):06d}".rstrip("0")


def _lock(path: Path) -> Path:
    path = path.resolve()
    return path.with_name(f".{path.name}.lock")
