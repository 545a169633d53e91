"""Limits for questions that people ask: how long the engine may take, and how much memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

from sfumato.engine.query import Engine
from sfumato.errors import EngineError

_AGAIN = 0.05  # seconds; one answer takes several queries, and an interruption between two of them is lost


class TooSlowError(EngineError):
    """A question that was stopped because it took too long."""


class TooLargeError(EngineError):
    """A question that needs more memory than the engine may use."""


@contextmanager
def stopped_after(engine: Engine, seconds: float) -> Iterator[None]:
    """Stop what DuckDB does in here after some seconds, as a TooSlowError; other engines are not stopped.

    What needs more memory than DuckDB may use is a TooLargeError.
    """
    if engine.is_distributed:
        yield
        return
    done, late = Event(), Event()

    def watch() -> None:
        if done.wait(seconds):
            return
        late.set()
        while not done.wait(_AGAIN):
            engine.interrupt()

    watching = Thread(target=watch, daemon=True)
    begun = monotonic()
    watching.start()
    try:
        yield
    except Exception as error:
        if not late.is_set():
            if not _lacks_memory(error):
                raise
            raise TooLargeError(
                "live table",
                expected="a question that is answered in the memory that the office gives to one",
                found="one that needs more",
                do="ask for fewer cells or attributes; the office may raise most_memory under [live] of the release",
            ) from None
        # What the engine says when it is interrupted may quote the query, and tells nothing more.
        raise TooSlowError(
            "live table",
            expected=f"a question that is answered within {seconds:g} seconds",
            found=f"one that was stopped after {monotonic() - begun:.0f}",
            do="ask for fewer cells or attributes, or ask again when fewer others do",
        ) from error
    finally:
        done.set()
        watching.join()


def _lacks_memory(error: Exception) -> bool:
    from duckdb import OutOfMemoryException

    return isinstance(error, OutOfMemoryException)
