"""Send work to Spark's executors in two pieces: what is large goes over disks, and the key never with it."""

import io
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from sfumato.keys import Secret

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import SparkSession

T = TypeVar("T")


@contextmanager
def sent(session: "SparkSession", work: Callable[[Any], T]) -> Iterator[Callable[[Any], T]]:
    """The same work, to be given to executors: all but its secrets is broadcast, and they travel with the task.

    PySpark writes work of more than a megabyte, as long lists of codes make it, to a file for the executors. Without
    its secrets it may lie there; the rest is a few hundred bytes, which no file is made for.
    """
    content, secrets = _apart(work)
    large = session.sparkContext.broadcast(content)
    try:
        yield Received[T](large=large, secrets=secrets)
    finally:
        large.destroy()


@dataclass(frozen=True, kw_only=True)
class Received(Generic[T]):
    """Work on its way, put together where it is done."""

    large: "Broadcast[bytes]"
    secrets: tuple[Secret, ...] = field(repr=False)

    def __call__(self, piece: Any) -> T:
        """Do the work on one piece."""
        return self._work(piece)

    @cached_property
    def _work(self) -> Callable[[Any], T]:
        return cast(Callable[[Any], T], _Together(self.large.value, self.secrets).load())


def _apart(work: Callable[[Any], Any]) -> tuple[bytes, tuple[Secret, ...]]:
    """The work as bytes without its secrets, and the secrets in the order in which they are missed."""
    from pyspark.cloudpickle import CloudPickler

    missed: list[Secret] = []

    class Apart(CloudPickler):
        def persistent_id(self, value: object) -> int | None:
            if not isinstance(value, Secret):
                return None
            missed.append(value)
            return len(missed) - 1

    content = io.BytesIO()
    Apart(content).dump(work)  # type: ignore[no-untyped-call]
    return content.getvalue(), tuple(missed)


class _Together(pickle.Unpickler):
    """Reads such bytes, and puts the secrets where they were."""

    def __init__(self, content: bytes, secrets: tuple[Secret, ...]) -> None:
        super().__init__(io.BytesIO(content))
        self._secrets = secrets

    def persistent_load(self, number: int) -> Secret:
        return self._secrets[number]
