"""The assessment after perturbation, on a synthetic survey of what jobs require: risks, attacks, utility and rules.

The real survey is not at hand. This one has occupations, requirements, weights and replicate weights; its cube is
protected with the parameters of Table 2, with draws of their own and as the paper has it, and assessed as `sfumato
assess` does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from sfumato.checking import checked
from sfumato.measures.attacks import AttackResult
from sfumato.noise.randomness import Repeatable
from sfumato.release import load
from sfumato.statistics.cube.assess import TOTALS, CubeAssessment, assess_cube, published_cube
from sfumato.statistics.cube.attacks import CellsFound, attack_cube, weights_attack
from sfumato.statistics.cube.stored import stored
from sfumato_lab.economy.requirements.generate import generate_requirements

QUOTES = 5_000
DRAWS = ("own", "shared")
_RULES = "least_count = 10\nlargest_cv = 0.5\nrules_before = { least_count = 30, largest_cv = 0.3 }\n"
_CUBE = """[[cube]]
name = "requirements"
by = ["occupation", "strength", "education", "telework"]
epsilon = 2
cap = 7
controls = [{ by = ["occupation"], epsilon = 0.5 }, { by = ["strength", "education"], epsilon = 0.5 }]
"""


@dataclass(frozen=True, kw_only=True)
class Assessed:
    """What the report finds: of the default in full, and of each way to draw what its columns give away."""

    assessment: CubeAssessment
    told: Mapping[str, tuple[CellsFound, ...]]
    weights: Mapping[str, tuple[AttackResult, ...]]

    def rows(self) -> Iterator[dict[str, Any]]:
        """One object for every figure."""
        for draws, found in self.told.items():
            for part in found:
                wrong = (part.told - part.found) / max(part.told, 1)
                yield _row("cells_told", part.found / part.holding, draws=draws, attack=part.attack)
                yield _row("cells_told_wrongly", wrong, draws=draws, attack=part.attack)
        for draws, results in self.weights.items():
            for result in results:
                yield _row("weights_read", result.success_rate, draws=draws, attack=result.attack)
        for linked in self.assessment.linkage:
            about = {"attack": linked.attack, "known": len(linked.known)}
            yield _row("disclosed", linked.disclosed / linked.targets, **about)
            yield _row("disclosed_without_protection", linked.unprotected / linked.targets, **about)
            yield _row("right_by_guessing", linked.guessed / linked.targets, **about)
        yield from _assessment(self.assessment)


def _row(quantity: str, ours: float, **about: Any) -> dict[str, Any]:
    return {"quantity": quantity, **about, "published": None, "ours": ours}


def assess_survey(*, seed: int, quotes: int = QUOTES) -> Assessed:
    """Protect and assess the cube of a survey; the same seed gives the same findings."""
    told, weights = {}, {}
    with TemporaryDirectory() as folder:
        made = generate_requirements(Path(folder) / "survey", quotes=quotes, seed=seed)
        text = made.release.read_text(encoding="utf-8")
        head = text[: text.index("[[cube]]")]
        made.release.write_text(f"{head}{_CUBE}{_RULES}", encoding="utf-8")
        with checked(load(made.release), everything=True, remember=False) as ready:
            (cube,) = ready.plan.cubes
            ((_, (true, sampling)),) = ready.tabulate({cube.name: cube})
    for draws in DRAWS:
        method = replace(cube.method, shared=draws == "shared")
        answer, figures = replace(cube, method=method).protect(true, Repeatable(seed, "li2020", draws))
        told[draws] = attack_cube(answer, figures, true, cube.section)
        weights[draws] = weights_attack(answer, figures, true)
        if draws == DRAWS[0]:
            content = stored(answer, replace(figures, sampling=cube.published_sampling(sampling)))
            chance = Repeatable(seed, "li2020", "reference")
            assessment = assess_cube(cube, true, sampling, published_cube(cube, content), randomness=chance)
    return Assessed(assessment=assessment, told=told, weights=weights)


def _assessment(found: CubeAssessment) -> Iterator[dict[str, Any]]:
    """Section 3.4: cells near zero, publishable estimates, differences, association, distance and overlap."""

    yield _row("zero_to_nonzero", found.risk.zero_changes.to_nonzero)
    yield _row("nonzero_to_zero", found.risk.zero_changes.to_zero)
    differences = [abs(pair.true - pair.published) for pair in found.associations]
    yield _row("cramers_v_difference", float(np.mean(differences)))
    for part in found.by_dimension:
        totals, size = part.kind(TOTALS), {"dimension": part.dimensions}
        yield _row("publishable_before", totals.all.publishable, **size)
        yield _row("newly_publishable", totals.all.newly_publishable, **size)
        yield _row("newly_marked", totals.all.newly_marked, **size)
        yield _row("median_relative_difference", totals.all.median_difference, **size)
        yield _row("interval_overlap", totals.all.overlap, **size)
        yield _row("error_beside_the_papers", totals.all.error_ratio, **size)
        if totals.distances is not None:
            yield _row("hellinger_distance", totals.distances.hellinger, **size)
