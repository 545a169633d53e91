"""The lecture's systems again, on synthetic children, employees and graduates; docs/reproduce.md describes it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.assess.attacks import AttackResult
from sfumato.assess.shared_draw_attack import attack_estimates
from sfumato.economy.files import RELEASE
from sfumato.economy.graduates.generate import generate_graduates
from sfumato.economy.opportunity.generate import generate_opportunity
from sfumato.economy.university.generate import file_names, generate_university
from sfumato.reproduce.chance import Repeatable
from sfumato.reproduce.economy_folder import economy_folder
from sfumato.reproduce.schmutte2020.atlas import Atlas, read_atlas
from sfumato.reproduce.schmutte2020.employee_report import EmployeeReport, evaluate_report
from sfumato.reproduce.schmutte2020.envelope import Envelope, chance_beyond, envelope
from sfumato.reproduce.schmutte2020.methods_by_size import MethodsBySize, compare_methods
from sfumato.reproduce.schmutte2020.percentiles import PercentilesBySize, compare_curves, read_earned
from sfumato.reproduce.schmutte2020.published import EPSILON
from sfumato.reproduce.schmutte2020.tails import Tails, classify_tails

PAPER = "schmutte2020"
TRACTS = 2_000
DRAWS, QUICK_DRAWS = 10, 2
GRADUATES_PER_TRACT, EMPLOYEES_PER_TRACT, FEWEST_EMPLOYEES = 500, 5, 1_000
"""How many graduates, and employees of one institution, go with every tract."""
BEYOND = ((10, 0.1), (20, 0.1), (50, 0.1))
"""People of a group, and by how much ε is exceeded."""
_FOLDERS = ("children", "employees", "graduates")
_REPORT = file_names(1)[-1]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Everything that was computed again."""

    epsilon: Fraction
    """Of every estimate, as the release file on the children has it."""
    children: int
    graduates_in_cells: int
    draws: int
    envelope: Envelope
    tails: Tails
    methods: MethodsBySize
    percentiles: PercentilesBySize
    report: EmployeeReport
    attacks: tuple[AttackResult, ...]
    """On what MOSE publishes here: the leak of its example code."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """One object for every figure: what it is about, what was published about it, and ours."""
        yield {"quantity": "epsilon_of_estimate", "published": float(EPSILON), "ours": float(self.epsilon)}
        for part in (self.envelope, self.tails, self.methods, self.percentiles, self.report):
            yield from part.rows()
        for people, excess in BEYOND:
            chance = chance_beyond(people, epsilon=float(EPSILON), excess=excess)
            about = {"people": people, "excess": excess, "epsilon": float(EPSILON), "published": None}
            yield {"quantity": "chance_beyond_epsilon", **about, "ours": chance}
        for found in self.attacks:
            rates = found.data()
            yield {
                "quantity": "attack_success",
                "attack": found.attack,
                "groups": found.targets,
                "published": None,
                "ours": rates["success_rate"],
                "as_published": rates["baseline_rate"],
            }


def reproduce(
    *,
    data: Path | None = None,
    tracts: int = TRACTS,
    draws: int = DRAWS,
    seed: int = 1,
    progress: Progress = lambda *_: None,
) -> Reproduction:
    """Protect predictions, reports and percentiles, several times each, and compare.

    Children, employees and graduates are made in temporary folders, or taken from folders of these names in `data`,
    where they are made if there are none yet.
    """

    def children(folder: Path) -> None:
        generate_opportunity(folder, tracts=tracts, seed=seed, progress=partial(progress, "making children"))

    def employees(folder: Path) -> None:
        number = max(EMPLOYEES_PER_TRACT * tracts, FEWEST_EMPLOYEES)
        tell = partial(progress, "making employees")
        generate_university(folder, employees=number, institutions=1, seed=seed, progress=tell)

    def graduates(folder: Path) -> None:
        people = GRADUATES_PER_TRACT * tracts
        generate_graduates(folder, people=people, seed=seed, progress=partial(progress, "making graduates"))

    made = zip(_FOLDERS, (children, employees, graduates), (RELEASE, _REPORT, RELEASE), strict=True)
    with ExitStack() as stack:
        folders = [
            stack.enter_context(economy_folder(None if data is None else data / name, make, release=release))
            for name, make, release in made
        ]
        steps = 5
        progress("tabulating", 0, steps)
        atlas, earned = read_atlas(folders[0]), read_earned(folders[2])
        progress("employee report", 1, steps)
        report = evaluate_report(folders[1] / _REPORT, draws=draws, seed=seed)
    progress("tails", 2, steps)
    tails = classify_tails(atlas, draws=draws, seed=seed)
    progress("methods by size", 3, steps)
    methods = compare_methods(atlas, draws=draws, seed=seed)
    progress("percentiles", 4, steps)
    return Reproduction(
        epsilon=atlas.method.epsilon_of_value,
        children=atlas.children,
        graduates_in_cells=len(earned.earnings),
        draws=draws,
        envelope=envelope(atlas),
        tails=tails,
        methods=methods,
        percentiles=compare_curves(earned, draws=draws, seed=seed),
        report=report,
        attacks=_attacks(atlas, seed),
    )


def _attacks(atlas: Atlas, seed: int) -> tuple[AttackResult, ...]:
    published = atlas.method.protect(atlas.cells, Repeatable(seed, PAPER, "attacked"))
    return attack_estimates(atlas.method, atlas.cells, published)
