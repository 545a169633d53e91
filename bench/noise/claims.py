"""The claims about samplers: exact noise, and how quickly it is drawn."""

from statistics import median
from typing import Any

from bench.shared.report import Claim, Results, Section

LEAST = 2e6
"""Draws a second on one core that every sampler must reach in its slowest setting."""


def samplers_section(results: Results) -> Section:
    """Every claim about samplers, of a run whose draws were checked."""
    opendp, samplers = results["opendp"], results["samplers"]
    rounds = len(next(iter(samplers["laplace"]["settings"].values()))["exact_seconds"])
    peer = f"OpenDP {opendp['version']}" if "version" in opendp else f"OpenDP did not finish: {opendp['failure']}"
    return Section(
        name="samplers",
        heading="Every sampler, in millions of draws a second on one core",
        lines=tuple(_line(sampler, opendp.get("draws", {})) for sampler in samplers.values()),
        notes=(
            f"CPU seconds, medians of {rounds} rounds. Every sampler is judged by its slowest setting, which is named; "
            "NumPy's figure is for the same setting. Every cell of a block is a draw. A weighted choice and a "
            "private median are one draw each, however many candidates have to be weighed or values sorted for it: "
            "their speed is that of reading these, which is given too.",
            f"{peer}: its discrete Laplace noise of scale 1,000 for a whole vector at a time; beside the noise with a "
            "cap, its geometric noise of scale 10 within bounds of ±200, which runs in constant time; beside the "
            "weighted choice, its noisy maximum of 20 candidates.",
            "Every round was checked: the mean size of the draws is within 3% of the expected one, ours, OpenDP's and "
            "NumPy's alike. NumPy's noise is not safe to publish, whatever its speed.",
        ),
    )


def _line(sampler: dict[str, Any], opendp: dict[str, Any]) -> Claim:
    rates = {name: setting["draws"] / median(setting["exact_seconds"]) for name, setting in sampler["settings"].items()}
    slowest = min(rates, key=lambda name: rates[name])
    beside = []
    if (peer := opendp.get(sampler["peer"])) is not None:
        beside.append(f"OpenDP {_millions(peer['draws'] / median(peer['seconds']))}")
    setting = sampler["settings"][slowest]
    if setting["inexact_seconds"]:
        beside.append(f"NumPy, inexact, {_millions(setting['draws'] / median(setting['inexact_seconds']))}")
    upto = f", up to {_millions(max(rates.values()))}" if len(rates) > 1 else ""
    reading = f", reading {_millions(rates[slowest] * setting['each'])} {sampler['reads']}" if sampler["reads"] else ""
    others = f"; {', '.join(beside)}" if beside else ""
    return Claim(
        what=sampler["label"],
        figure=f"{_millions(rates[slowest])}{reading} ({slowest}){upto}{others}",
        target="≥ 2 million a second",
        met=rates[slowest] >= LEAST,
    )


def _millions(rate: float) -> str:
    return f"{rate / 1e6:.2g}" if rate < 1e6 else f"{rate / 1e6:.1f}"
