"""OpenDP's samplers, called as its users call them: CPU seconds of every round, and how large the draws were."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import opendp.prelude as dp

dp.enable_features("contrib")


def noise(make: Any, n: int, **options: Any) -> Callable[[], list[int]]:
    """Noise on a vector of zeros."""
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    measurement, zeros = make(*space, **options), [0] * n
    return lambda: measurement(zeros)


def choices(costs: list[list[int]], rate: float) -> Callable[[], list[int]]:
    """The place of one of several candidates for every row of costs, as one who must hide a record chooses."""
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    # Permute-and-flip: the same guarantee as the exponential mechanism, and never a larger cost on average.
    measurement = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=1 / rate, negate=True)
    return lambda: [measurement(row) for row in costs]


def main() -> None:
    """Draw as the file that the command line names asks for."""
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    costs = asked["costs"]
    draws = {
        "laplace": noise(dp.m.make_laplace, asked["draws"], scale=asked["scale"]),
        "geometric": noise(
            dp.m.make_geometric, asked["capped_draws"], scale=asked["capped_scale"], bounds=tuple(asked["bounds"])
        ),
        "choice": choices(costs, asked["rate"]),
    }
    told = {}
    for name, draw in draws.items():
        draw()
        seconds, sizes = [], []
        for _ in range(asked["repeat"]):
            begin = process_time()
            drawn = draw()
            seconds.append(process_time() - begin)
            # How large they are is worked out after the clock has stopped.
            chosen = name == "choice"
            size = sum(row[at] for row, at in zip(costs, drawn, strict=True)) if chosen else sum(map(abs, drawn))
            sizes.append(size / len(drawn))
        told[name] = {"seconds": seconds, "sizes": sizes}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
