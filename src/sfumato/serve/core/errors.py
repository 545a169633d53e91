"""Questions that are refused: the same words as every error of sfumato, and the HTTP status that goes with them."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

from sfumato.engine.limits import TooSlowError
from sfumato.errors import BudgetError, DiskError, LedgerError, Said, SfumatoError

_LONGEST = 120
_LONGEST_OF_OURS = 700
"""Letters of what was found by another error: mostly these are words of ours."""
_log = logging.getLogger("uvicorn.error")


class RefusedError(SfumatoError):
    """A request that cannot be answered; what the client sent is quoted in short."""

    def __init__(
        self,
        where: str,
        *,
        expected: str,
        found: str,
        do: str,
        status: int = 400,
        longest: int = _LONGEST,
        said: Said | None = None,
    ) -> None:
        super().__init__(where, expected=expected, found=shortened(found, longest), do=do, said=said)
        self.status = status


def server_fault(error: Exception) -> RefusedError:
    """What is told of a fault of the server itself, whose own words go to its log: they name its files."""
    _log.error("The server cannot keep what it should: %s", error)
    return RefusedError(
        "server",
        expected="a server that can keep what it is asked and what it answers",
        found="one whose disk is full, or whose ledger is not in order",
        do="ask again later, and tell the office",
        status=503,
        said=said("The server cannot keep what it is asked. Ask again later, and tell the office."),
    )


@contextmanager
def refusing() -> Iterator[None]:
    """Give every error of sfumato that is raised here the HTTP status that goes with it."""
    try:
        yield
    except RefusedError:
        raise
    except (DiskError, LedgerError) as error:
        raise server_fault(error) from error
    except BudgetError as error:
        raise _refused(error, 403) from error
    except TooSlowError as error:
        raise _refused(error, 503) from error
    except SfumatoError as error:
        raise _refused(error, 400) from error


def _refused(error: SfumatoError, status: int) -> RefusedError:
    return RefusedError(
        error.where,
        expected=error.expected,
        found=error.found,
        do=error.do,
        status=status,
        longest=_LONGEST_OF_OURS,
        said=error.said,
    )


def not_found(what: str, found: str, do: str, said: Said | None = None) -> RefusedError:
    """Nothing has this name."""
    return RefusedError(what, expected=f"a {what} that exists", found=found, do=do, status=404, said=said)


def said(text: str, /, **facts: str | int | Fraction) -> Said:
    """What a reader is told, in the language of the page; what a client sent is quoted in short.

    >>> said("There is no table “{name}”.", name="jobs").facts
    {'name': 'jobs'}
    """
    return Said(text, {name: shortened(fact) if isinstance(fact, str) else fact for name, fact in facts.items()})


def shortened(text: str, longest: int = _LONGEST) -> str:
    """The text, cut where it is longer than anyone would read; what cannot be printed is left out."""
    printable = "".join(character if character.isprintable() else " " for character in text[:longest])
    return printable if len(text) <= longest else f"{printable}…"
