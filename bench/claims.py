"""The claims: what is promised, what was measured, and whether the one holds the other."""

from dataclasses import dataclass
from statistics import median
from typing import Any

Results = dict[str, Any]
"""What one run of the benchmark measured, as it stands in foundation.json."""

JOBS = 10_900_000
"""The size of economy that the targets are about."""
WARMED = (
    "Imports and the page cache were warmed by one round that is not counted; "
    "the floor and the cases then ran in turn, each round in another order, in one process."
)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One line of the report."""

    what: str
    figure: str
    target: str = "—"
    met: bool | None = None

    @property
    def verdict(self) -> str:
        """In one word."""
        return {None: "—", True: "met", False: "missed"}[self.met]


def claims(results: Results) -> list[Claim]:
    """Every claim of a run whose results passed the gate."""
    return [*_warm(results), *_memory(results), *_commands(results), *_others(results)]


def _warm(results: Results) -> list[Claim]:
    runs, labels = results["seconds"], results["labels"]
    targets = {"seen": 1.5, "first": 2.5}
    lines = [Claim(what=labels["floor"], figure=_range(runs["floor"]))]
    for name in runs:
        if name != "floor":
            ratio, figure = _ratio(runs[name], runs["floor"])
            lines.append(_limited(labels[name], ratio, figure, targets.get(name), "×"))
    return lines


def _memory(results: Results) -> list[Claim]:
    lines = []
    for name, peak in results["peak_bytes"].items():
        limit = None if name == "floor" else 1.5
        figure = f"{peak / 1e9:.2f} GB"
        lines.append(_limited(f"Peak memory: {results['labels'][name]}", peak / 1e9, figure, limit, " GB"))
    return lines


def _commands(results: Results) -> list[Claim]:
    runs, labels = results["command_seconds"], results["labels"]
    return [
        Claim(
            what=f"Whole command, with interpreter start: {labels[name]}",
            figure=_range(seconds) if name == "floor" else _ratio(seconds, runs["floor"])[1],
        )
        for name, seconds in runs.items()
    ]


def _others(results: Results) -> list[Claim]:
    sampler, imports = results["draws_a_second"], results["import_seconds"]
    lines = [
        _limited(f"`{command}`", seconds, f"{seconds:.1f} s", 60, " s")
        for command, seconds in (
            (f"sfumato economy --jobs {results['jobs']}", results["economy_seconds"]),
            ("sfumato demo", results["demo_seconds"]),
        )
    ]
    lines += [
        _limited(f"`{code}`, net of Python's start", seconds, f"{seconds:.3f} s", limit, " s")
        for code, seconds, limit in (
            ("import sfumato", imports["sfumato"], 0.3),
            ("import sfumato.release_file, sfumato.run", imports["what publishing needs"], None),
        )
    ]
    slower = sampler["inexact"] / sampler["exact"]
    lines += [
        Claim(
            what="Exact noise from the operating system's randomness, on one core",
            figure=f"{sampler['exact'] / 1e6:.1f} million draws a second",
        ),
        Claim(
            what="Inexact floating-point noise by NumPy, on one core",
            figure=f"{sampler['inexact'] / 1e6:.1f} million draws a second ({slower:.2f}× the exact ones)",
        ),
    ]
    return lines


def _limited(what: str, value: float, figure: str, limit: float | None, unit: str) -> Claim:
    if limit is None:
        return Claim(what=what, figure=figure)
    return Claim(what=what, figure=figure, target=f"≤ {limit:g}{unit}", met=value <= limit)


def _ratio(seconds: list[float], floor: list[float]) -> tuple[float, str]:
    """The ratio of the medians; and in words, with how far the ratios of single rounds spread."""
    ratio = median(seconds) / median(floor)
    rounds = [ours / theirs for ours, theirs in zip(seconds, floor, strict=True)]
    return ratio, f"{ratio:.2f}×, by round {min(rounds):.2f}–{max(rounds):.2f} ({_range(seconds)})"


def _range(seconds: list[float]) -> str:
    return f"{median(seconds):.2f} s, {min(seconds):.2f}–{max(seconds):.2f}"
