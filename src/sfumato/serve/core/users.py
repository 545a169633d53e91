"""Who may ask for live tables: names, roles, and digests of tokens that only their holders have.

A token is 256 bits from the operating system, so that its SHA-256 can be kept: nobody can try all tokens, as somebody
could try all passwords. The list is one small file that its owner alone can read, replaced in a single step. A server
looks whether it was replaced before it believes a token, so that a token that was revoked is worth nothing at once.
"""

import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any

from sfumato.durable import alone, write_durably
from sfumato.errors import SfumatoError, UsersError

FILE = "users.json"
PUBLIC = "public"
"""What everybody without a token is called."""
PREFIX = "sfumato_"
TOKEN = re.compile(PREFIX + r"[A-Za-z0-9_-]{43}")
"""What a token looks like; the beginning lets programs that search for leaked secrets find it."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_FORMAT = 1
_BYTES = 32


class Role(StrEnum):
    """What a user may do: ask for live tables, or also see the budget and its history."""

    analyst = "analyst"
    steward = "steward"


@dataclass(frozen=True, kw_only=True)
class User:
    """A person or program with a token; the token itself is nowhere but with its holder."""

    name: str
    role: Role
    created: datetime
    expires: datetime | None = None
    expired: datetime | None = None
    """When the token was first seen to have expired: it stays so, whatever a clock says later."""
    revoked: datetime | None = None
    digest: bytes = field(repr=False)

    def active(self, now: datetime) -> bool:
        """Whether the token is believed at this time."""
        return self.revoked is None and not self.past(now)

    def past(self, now: datetime) -> bool:
        """Whether the token has expired, now or at any time before."""
        return self.expired is not None or (self.expires is not None and now >= self.expires)

    def marked_expired(self, now: datetime) -> "User":
        """The same user, with a note of the expiry that is seen now for the first time."""
        return replace(self, expired=now) if self.past(now) and self.expired is None else self

    def may(self, role: Role) -> bool:
        """Whether the user may do what a role may: a steward may do all that an analyst may."""
        return self.role is Role.steward or self.role is role

    def state(self, now: datetime) -> str:
        """Active, expired or revoked."""
        return "active" if self.active(now) else "expired" if self.revoked is None else "revoked"


class Users:
    """The list of users in a folder, read again whenever the file was replaced."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._read_as: tuple[int, int, int] | None = None
        self._known: tuple[User, ...] = ()
        self._clock = _Clock()

    def add(self, name: str, role: Role, *, expires: datetime | None = None) -> tuple[User, str]:
        """Add a user and make a token, which is returned this once and kept by nobody else."""
        if not _NAME.fullmatch(name) or name.lower() == PUBLIC:
            raise UsersError(
                "name",
                expected=f"up to 64 letters, digits and . _ @ - that begin with a letter or digit, and not {PUBLIC!r}",
                found=repr(name[:80]),
                do="choose another name",
            )
        now = datetime.now(UTC)
        if expires is not None and expires <= now:
            raise UsersError("expiry", expected="a time to come", found=str(expires), do="choose a later one")
        token = PREFIX + secrets.token_urlsafe(_BYTES)
        user = User(name=name, role=role, created=now, expires=expires, digest=digest(token))
        make_folder(self.path.parent)
        with alone(self._lock):
            known = self.all()
            if any(one.name.lower() == name.lower() and one.active(now) for one in known):
                raise UsersError(
                    f"user {name}",
                    expected="a name that nobody has whose token is in force",
                    found="one with this name",
                    do=f"choose another name, or revoke the token first: sfumato users revoke {name}",
                )
            self._write([*known, user])
        return user, token

    def revoke(self, name: str) -> User:
        """Make the token of a user worth nothing, from this moment on."""
        if not self.path.exists():
            raise _unknown(name)
        with alone(self._lock):
            known, now = list(self.all()), datetime.now(UTC)
            for place, user in enumerate(known):
                if user.name.lower() == name.lower() and user.revoked is None:
                    known[place] = replace(user, revoked=now)
                    self._write(known)
                    return known[place]
        raise _unknown(name)

    def all(self) -> tuple[User, ...]:
        """Every user there ever was, in the order they were added."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return ()
        if self._read_as != _identity(found):
            self._clock = _Clock()
            self._read_as, self._known = _read(self.path)
        return self._known

    def seen(self) -> tuple[User, ...]:
        """The same, once every token that has expired by now is noted as such, for good."""
        now = self._clock.now()
        if any(user.marked_expired(now) != user for user in self.all()):
            try:
                with alone(self._lock):
                    self._write([user.marked_expired(now) for user in self.all()])
            except (OSError, SfumatoError):  # what cannot be kept still holds as long as this process runs
                self._known = tuple(user.marked_expired(now) for user in self._known)
        return self.all()

    def holder(self, token: str) -> User | None:
        """The user whose token this is, if it is in force; how long this takes says nothing about any token."""
        shown, now, holder = digest(token), self._clock.now(), None
        for user in self.seen():
            if hmac.compare_digest(user.digest, shown) and user.active(now):
                holder = user
        return holder

    def still(self, shown: bytes) -> User | None:
        """The user whose token has this digest, as the list has it now, if the token is still in force."""
        now = self._clock.now()
        return next((one for one in self.seen() if one.digest == shown and one.active(now)), None)

    @property
    def _lock(self) -> Path:
        return self.path.with_name(f".{FILE}.lock")

    def _write(self, users: Sequence[User]) -> None:
        content = {"format": _FORMAT, "users": [_content(user) for user in users]}
        write_durably(self.path, json.dumps(content, indent=2).encode() + b"\n")


class _Clock:
    """The time, which does not go back in this process, whatever is done to the clock of the machine."""

    def __init__(self) -> None:
        self._began, self._at = datetime.now(UTC), monotonic()

    def now(self) -> datetime:
        """The time now."""
        return max(datetime.now(UTC), self._began + timedelta(seconds=monotonic() - self._at))


def digest(token: str) -> bytes:
    """What is kept of a token."""
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def make_folder(folder: Path) -> None:
    """Make a folder for its owner alone, and refuse one that others can look into or write to."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = folder.stat()
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISDIR(found.st_mode) or mode & 0o077 or found.st_uid != os.geteuid():
        raise UsersError(
            f"folder {folder}",
            expected="a folder of the user who runs this, for that user alone (mode 700)",
            found=f"mode {mode:o}" if found.st_uid == os.geteuid() else "a folder of somebody else",
            do=f"chmod 700 {folder}, or name another folder with --state",
        )


def _read(path: Path) -> tuple[tuple[int, int, int], tuple[User, ...]]:
    try:
        file = path.open("rb")
    except PermissionError as error:
        raise UsersError(
            f"users in {path}",
            expected="a file that belongs to the user who runs this",
            found="a file of somebody else",
            do="run sfumato users and sfumato serve as the same user",
        ) from error
    with file:
        found = os.fstat(file.fileno())
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise UsersError(
                f"users in {path}",
                expected="a file that only its owner can read or write (mode 600)",
                found=f"mode {stat.S_IMODE(found.st_mode):o}",
                do=f"chmod 600 {path}; if somebody may have changed it, remove it and add all users again",
            )
        content = file.read()
    try:
        whole = json.loads(content)
        users = tuple(map(_user, whole["users"])) if whole["format"] == _FORMAT else None
    except (ValueError, KeyError, TypeError):
        users = None
    if users is None:  # raised here and not above, since the other error may quote what it could not read
        raise UsersError(
            f"users in {path}",
            expected="a list as sfumato users writes it",
            found="something else",
            do="restore it from a backup, or remove it and add all users again",
        )
    return _identity(found), users


def _identity(found: os.stat_result) -> tuple[int, int, int]:
    """What differs when a file was replaced: every replacement is a new file."""
    return found.st_ino, found.st_mtime_ns, found.st_size


def _content(user: User) -> dict[str, Any]:
    return {
        "name": user.name,
        "role": user.role.value,
        "made": user.created.isoformat(),
        "expires": user.expires and user.expires.isoformat(),
        "expired": user.expired and user.expired.isoformat(),
        "revoked": user.revoked and user.revoked.isoformat(),
        "sha256": user.digest.hex(),
    }


def _user(given: dict[str, Any]) -> User:
    shown = bytes.fromhex(given["sha256"])
    if not _NAME.fullmatch(given["name"]) or len(shown) != sha256().digest_size:
        raise ValueError("damaged")
    return User(
        name=given["name"],
        role=Role(given["role"]),
        created=_time(given["made"]),
        expires=given["expires"] and _time(given["expires"]),
        expired=_time(given["expired"]) if given.get("expired") else None,  # earlier versions did not note it
        revoked=given["revoked"] and _time(given["revoked"]),
        digest=shown,
    )


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("damaged")
    return found


def _unknown(name: str) -> UsersError:
    return UsersError(
        f"user {name[:80]}",
        expected="a user whose token is not revoked",
        found="nobody with this name",
        do="see who there is with sfumato users list",
    )
