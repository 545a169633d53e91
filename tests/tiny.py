"""The tiny data: small enough to count by hand."""

from typing import Any

TINY: dict[str, dict[str, list[Any]]] = {
    # 103 has no jobs: its cell is an ordinary zero. Nobody farms in B: that cell is a structural zero.
    "workplaces": {"workplace": [100, 101, 102, 103], "place": ["A", "A", "B", "A"], "industry": [11, 62, 62, 11]},
    "workers": {
        "worker": [1, 2, 3, 4, 5, 6, 7],
        "sex": ["F", "M", "F", "M", "F", "F", "M"],
        "age": [1, 1, 2, 3, 3, 2, 1],
    },
    "jobs": {
        "worker": [1, 2, 3, 4, 5, 6, 7, 1],
        "workplace": [100, 100, 100, 101, 101, 102, 102, 102],
        "earnings": [10, 20, 30, 40, 50, 60, 70, 80],
    },
}
