"""Noise that is the same in every run: what holds in nearly every draw of a release is a claim about one of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.noise.randomness import OperatingSystem, Seeded


@contextmanager
def same_draws(seed: int = 18) -> Iterator[None]:
    """Let every release that this process runs meanwhile draw the words of a seed, parts of a table in their order."""
    stream = Seeded(seed)

    def words(_self: OperatingSystem, n: int, /) -> NDArray[np.uint64]:
        return stream.words(n)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OperatingSystem, "words", words)
        patch.setattr("sfumato.engine.chunks.os", SimpleNamespace(cpu_count=lambda: 1))
        yield
