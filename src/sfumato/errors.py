"""Every error of sfumato says what was expected, what was found, and what to do."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar


@dataclass(frozen=True)
class Said:
    """An error as one sentence for readers: a text of the catalogues of the page, and what stands in its braces."""

    text: str
    facts: Mapping[str, str | int | Fraction]
    with_reason: bool = False
    """Whether the error itself, in English, has a reason that the sentence has not."""


class SfumatoError(Exception):
    """The root of every error a user can meet; its text is meant to be read without a traceback.

    >>> print(SfumatoError("table 'jobs'", expected="a positive epsilon", found="-1", do="set epsilon above 0"))
    table 'jobs'
      expected: a positive epsilon
      found:    -1
      do:       set epsilon above 0
    """

    exit_code: ClassVar[int] = 2
    """What a command ends with: `sfumato.cli.EXIT_CODES` says what each number means."""

    def __init__(self, where: str, *, expected: str, found: str, do: str, said: Said | None = None) -> None:
        self.where, self.expected, self.found, self.do, self.said = where, expected, found, do, said
        super().__init__(f"{where}\n  expected: {expected}\n  found:    {found}\n  do:       {do}")


@contextmanager
def naming(named: str) -> Iterator[None]:
    """Say in an error which table or cube it is about."""
    try:
        yield
    except SfumatoError as error:
        where = error.where if error.where.startswith(named) else f"{named}: {error.where}"
        raise type(error)(where, expected=error.expected, found=error.found, do=error.do, said=error.said) from error


class UsageError(SfumatoError):
    """A command, an option or its value was not understood."""


class ReleaseError(SfumatoError):
    """The release file asks for something that does not exist or does not fit together."""

    exit_code = 3


class DataError(SfumatoError):
    """The confidential data do not match their description; raised before anything is charged."""

    exit_code = 4


class MethodError(SfumatoError):
    """A method cannot work with these parameters; the text names the violated inequality."""

    exit_code = 3


class BudgetError(SfumatoError):
    """A charge that the budget does not allow; nothing was charged."""

    exit_code = 5


class LedgerError(SfumatoError):
    """The ledger, or an answer stored beside it, is missing, unreadable or was tampered with."""

    exit_code = 6


class DiskError(SfumatoError):
    """The disk is full or a file cannot be read or written by this user; nothing was half-written."""

    exit_code = 9


class BusyError(SfumatoError):
    """Another run works on the same ledger, and this one was told not to wait; it changed nothing."""

    exit_code = 10


class BundleError(SfumatoError):
    """A bundle cannot be written, or does not match its manifest."""

    exit_code = 7


class EngineError(SfumatoError):
    """The engine is not installed or cannot be reached."""

    exit_code = 9


class KeyFileError(SfumatoError):
    """The key file is missing, damaged or not secret enough; the text never quotes what is in it."""

    exit_code = 8


class UsersError(SfumatoError):
    """The list of users is damaged or not secret enough, or cannot be changed as was asked; no token is quoted."""

    exit_code = 8
