"""Draws a second of every sampler on one core, beside OpenDP's exact ones and NumPy's inexact ones, all checked."""

import json
import subprocess
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from time import process_time
from typing import Any

import numpy as np

from bench.noise.cases import CANDIDATES, Case, Numbers, Setting, cases
from bench.peers.environments import SCRIPTS, environment, reason_of
from bench.shared.gate import WrongResultError
from bench.shared.processes import Tell
from bench.shared.report import Results
from sfumato.noise.choice import WeightedChoice
from sfumato.noise.geometric import Geometric

_WITHIN = 0.03
"""How far the mean size of draws may be from the expected one, as a share of it."""
_LIMIT = 900
"""Seconds that OpenDP may take for everything."""
_DRAWS = {"laplace": 50_000, "geometric": 10_000, "choice": 5_000}
"""Of OpenDP in a round."""
_SCALE, _CAPPED_SCALE, _CAP = 1000, 10, 200
_RATE = Fraction(1, 50)


def measure_samplers(folder: Path, *, repeat: int, tell: Tell) -> Results:
    """Draw with every sampler in every setting; CPU seconds, so that other work on the machine counts for little."""
    generator, found = np.random.default_rng(), {}
    for case in cases():
        tell(case.label)
        found[case.name] = {
            "label": case.label,
            "reads": case.reads,
            "peer": case.peer,
            "settings": {
                setting.label: {
                    "draws": setting.draws,
                    "each": setting.each,
                    "exact_seconds": _seconds(case, setting, setting.exact, repeat),
                    "inexact_seconds": _seconds(case, setting, _with(setting, generator), repeat),
                }
                for setting in case.settings
            },
        }
    tell("OpenDP")
    return {"samplers": found, "opendp": _opendp(folder, repeat)}


def _with(setting: Setting, generator: np.random.Generator) -> Callable[[], Numbers] | None:
    inexact = setting.inexact
    return None if inexact is None else lambda: inexact(generator)


def _seconds(case: Case, setting: Setting, draw: Callable[[], Numbers] | None, repeat: int) -> list[float]:
    """Of every round; the first one warms, and every one is checked."""
    seconds: list[float] = []
    for _ in range(repeat + 1 if draw else 0):
        assert draw is not None
        begin = process_time()
        drawn = draw()
        seconds.append(process_time() - begin)
        # Every draw counts alike, however large its scale is.
        apart = float(np.mean(setting.size(drawn) / setting.expected))
        _refuse_unless(abs(apart - 1) <= _WITHIN, f"{case.label}, {setting.label}", apart)
    return seconds[1:]


def _opendp(folder: Path, repeat: int) -> dict[str, Any]:
    """The same of OpenDP in its own environment, or the reason why there is nothing."""
    there = environment("opendp")
    if there.python is None:
        return {"failure": there.reason}
    costs = np.random.default_rng(9).integers(0, 200, (_DRAWS["choice"], CANDIDATES))
    asked = {
        "draws": _DRAWS["laplace"],
        "scale": _SCALE,
        "capped_draws": _DRAWS["geometric"],
        "capped_scale": _CAPPED_SCALE,
        "bounds": [-_CAP, _CAP],
        "costs": costs.tolist(),
        "rate": float(_RATE),
        "repeat": repeat,
    }
    file = folder / "draws.json"
    file.write_text(json.dumps(asked), encoding="utf-8")
    try:
        told = json.loads(
            subprocess.run(
                [there.python, SCRIPTS / "opendp_draws.py", file],
                check=True,
                capture_output=True,
                text=True,
                timeout=_LIMIT,
                env=there.variables,
            ).stdout
        )
    except subprocess.TimeoutExpired:
        return {"failure": f"ended after {_LIMIT} s, the limit"}
    except subprocess.CalledProcessError as error:
        return {"failure": reason_of(error.stderr)}
    _check_opendp({name: draws["sizes"] for name, draws in told.items()}, costs)
    return {
        "version": there.versions["opendp"],
        "draws": {name: {"draws": _DRAWS[name], "seconds": draws["seconds"]} for name, draws in told.items()},
    }


def _check_opendp(sizes: dict[str, Sequence[float]], costs: Numbers) -> None:
    noise, capped = (Geometric(epsilon=Fraction(1, scale)) for scale in (_SCALE, _CAPPED_SCALE))
    choice = WeightedChoice(rate=_RATE)
    chance = float(np.mean((choice.probabilities(costs) * costs).sum(axis=1)))
    # Noise beyond the bounds is given as the bound. Permute-and-flip costs no more than our choice, and at least half.
    expected = {
        "laplace": (noise.expected_magnitude, noise.expected_magnitude),
        "geometric": (cut := float(capped.survival(np.arange(1, _CAP + 1)).sum()), cut),
        "choice": (chance / 2, chance),
    }
    for name, (least, most) in expected.items():
        size = fmean(sizes[name])
        met = least * (1 - _WITHIN) <= size <= most * (1 + _WITHIN)
        _refuse_unless(met, f"OpenDP, {name}", size / most)


def _refuse_unless(met: bool, whose: str, apart: float) -> None:
    if not met:
        raise WrongResultError(f"{whose}: the draws are {apart:.3f} times as large as they should be")
