"""Preview a release before anything is charged: what it would cost, lose and reveal, of one or several candidates.

The true data are counted and answers are drawn on trial, looked at and thrown away. Ledger, store, bundle and key stay
as they are to the byte. Choosing parameters after a look at such figures is not covered by the guarantee;
docs/preview.md says what that means.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from itertools import product
from math import ceil, log2
from pathlib import Path
from typing import Any

from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
from sfumato.charts.svg import percent
from sfumato.checking import Checked, Findings, Progress, checked, findings
from sfumato.measures.drawing import table
from sfumato.measures.usability import ACCURACY, HEADINGS, Usability, usability_rows
from sfumato.paths import refuse_other
from sfumato.plan import make_plan
from sfumato.privacy.guarantee import at_least, at_most, plain
from sfumato.release import Release
from sfumato.report.assess import assess_answers
from sfumato.report.assessment import Assessment
from sfumato.report.candidates import AS_WRITTEN, refuse_strange, refuse_too_many, with_alpha, with_epsilon
from sfumato.report.page import BEGINS, report_body, write_page
from sfumato.report.published import on_trial
from sfumato.safeguards import as_rounded_before

NOTE = (
    "CONFIDENTIAL PREVIEW: computed from true values, of answers drawn on trial. Nothing was charged, kept or "
    "published. Do not publish this or pass it on."
)
CHOOSING = (
    "The guarantee holds for parameters that were chosen without looking at these data. Who looks here first and then "
    "chooses reveals something by the choice, and no guarantee covers that. Choose on earlier, synthetic or public "
    "data; or fix beforehand which few candidates there are and by which rule one is taken."
)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One choice of parameters: what it would cost, and what it would lose and reveal."""

    label: str
    findings: Findings
    assessment: Assessment

    @property
    def epsilon(self) -> Fraction:
        """What all statistics cost together, whether they were paid before or not."""
        return self.findings.plan.epsilon()

    @property
    def would_run(self) -> bool:
        """Whether the ledger would let it run."""
        return self.findings.refusal is None and self.findings.due <= self.findings.left

    @property
    def why_not(self) -> str:
        """Why the ledger would not let it run; empty where it would."""
        if self.findings.refusal is not None:
            return str(self.findings.refusal)
        beyond = f"It costs epsilon = {at_most(self.findings.due)}, and {at_least(self.findings.left)} is left."
        return "" if self.would_run else beyond

    def data(self) -> dict[str, Any]:
        """Its figures for machines."""
        return {
            "candidate": self.label,
            "epsilon": float(self.epsilon),
            "due_epsilon": float(self.findings.due),
            "remaining_epsilon": float(self.findings.left),
            "would_run": self.would_run,
            "refusal": None if self.findings.refusal is None else str(self.findings.refusal),
            "usability": [one.data() for one in self.assessment.usability],
            "attacks": [{"of": title, **found.data()} for title, found in self.assessment.attacks()],
            "growth": [{"table": found.title, **found.data()} for found in self.assessment.growth],
        }


@dataclass(frozen=True, kw_only=True)
class Preview:
    """Candidates side by side, and the page that shows them; confidential."""

    candidates: tuple[Candidate, ...]
    report: Path

    @property
    def bits(self) -> float:
        """What the choice of one of these candidates may reveal at most, if nothing but this choice looks at data."""
        return log2(len(self.candidates))

    @property
    def choosing(self) -> str:
        """What the choice means for the guarantee."""
        if len(self.candidates) == 1:
            return CHOOSING
        most = ceil(100 * self.bits) / 100
        return (
            f"{CHOOSING} The choice among {len(self.candidates)} candidates that were fixed before anyone looked "
            f"reveals at most {most:g} bit{'' if most == 1 else 's'} beyond the guarantee, of whomever."
        )

    @property
    def titles(self) -> list[str]:
        """What there is to compare, each once."""
        return list(dict.fromkeys(one.title for found in self.candidates for one in found.assessment.usability))

    def usability(self, title: str) -> list[tuple[str, Usability]]:
        """The use of one statistic under every candidate that has it."""
        return [
            (found.label, one) for found in self.candidates for one in found.assessment.usability if one.title == title
        ]

    def data(self) -> dict[str, Any]:
        """All figures for machines."""
        return {
            "confidential": True,
            "choosing": self.choosing,
            "report": str(self.report),
            "candidates": [found.data() for found in self.candidates],
        }


def preview(
    release: Release,
    report: Path | None = None,
    progress: Progress = lambda _: None,
    *,
    epsilons: Sequence[Fraction] = (),
    alphas: Sequence[Fraction] = (),
    beside: Mapping[str, Release] | None = None,
    accuracy: float = ACCURACY,
) -> Preview:
    """Write the confidential preview of a release; nothing is charged, kept or published.

    `epsilons` are what all statistics together may cost, each keeping its share; `alphas` replace the alpha of the
    budget and of every table. `beside` are further releases by their names, such as one with another method. A cell can
    be used if it is expected to be off by no more than the share `accuracy` of its value.
    """
    refuse_strange("--accuracy", [accuracy])
    refuse_strange("--epsilon", epsilons)
    refuse_strange("--alpha", alphas)
    releases = {AS_WRITTEN: release} | dict(beside or {})
    refuse_too_many(len(releases) * max(len(epsilons), 1) * max(len(alphas), 1))
    place = report or release.confidential / "preview.html"
    path = refuse_other(place, "--report", "report", BEGINS, planned=release.bundle)
    every: tuple[Sequence[Fraction | None], ...] = (alphas if alphas else [None], epsilons if epsilons else [None])
    parameters = [(alpha, epsilon) for alpha, epsilon in product(*every)]
    found = [
        candidate
        for name, one in releases.items()
        for candidate in _candidates(one, name, path, progress, parameters=parameters, accuracy=accuracy)
    ]
    made = Preview(candidates=tuple(found), report=path)
    write_page(
        path,
        release.about,
        note=NOTE,
        heading="what a run would cost, lose and reveal",
        body=_body(made),
    )
    return made


def _candidates(
    release: Release,
    name: str,
    path: Path,
    progress: Progress,
    *,
    parameters: Sequence[tuple[Fraction | None, Fraction | None]],
    accuracy: float,
) -> list[Candidate]:
    """Every combination of parameters of one release: its data are opened, validated and counted once."""
    counted: list[tuple[Any, Any]] = []
    made = []
    with checked(release, progress, everything=True, remember=False) as ready:
        for alpha, epsilon in parameters:
            chosen = with_alpha(release, alpha)
            planned = _planned(ready, chosen)
            if epsilon is not None:
                planned = _planned(ready, with_epsilon(chosen, planned.plan, epsilon))
            words = [
                f"alpha {plain(alpha)}" if alpha is not None else "",
                f"epsilon {plain(epsilon)}" if epsilon else "",
            ]
            said = ", ".join(filter(None, words))
            progress("tabulate")
            trial = on_trial(planned, counted, progress)
            progress("assess")
            made.append(
                Candidate(
                    label=said if said and name == AS_WRITTEN else f"{name}, {said}" if said else name,
                    findings=findings(planned, progress),
                    assessment=assess_answers(trial, path, accuracy=accuracy),
                )
            )
    return made


def _planned(ready: Checked, release: Release) -> Checked:
    """The same data with the plan of other parameters."""
    if release is ready.plan.release:
        return ready
    identity = ready.identity
    plan = make_plan(release, ready.opened.codelists())
    return replace(ready, plan=identity.as_charged(as_rounded_before(plan, identity)))


# The page.


def _body(made: Preview) -> str:
    costs = table(
        "What it would cost",
        ("candidate", "epsilon of all together", "to be charged", "left in the account before", "would it run"),
        [
            (
                found.label,
                at_most(found.epsilon),
                at_most(found.findings.due),
                at_least(found.findings.left),
                "yes" if found.would_run else "no: beyond the budget, or refused",
            )
            for found in made.candidates
        ],
    )
    refused = "".join(
        f"<p>{escape(found.label)}: {escape(str(found.findings.refusal))}</p>"
        for found in made.candidates
        if found.findings.refusal is not None
    )
    return f"""<p><strong>{escape(made.choosing)}</strong></p>
{costs}{refused}
{"".join(_compared(title, made.usability(title)) for title in made.titles)}
{_attacks(made)}
{"".join(_whole(found, alone=len(made.candidates) == 1) for found in made.candidates)}"""


def _compared(title: str, found: list[tuple[str, Usability]]) -> str:
    first = found[0][1]
    rows = [(f"{label}: {size}", *figures) for label, one in found for size, *figures in usability_rows(one)]
    caption = f"By true size of the cell; off by more than {first.share} of its value cannot be used"
    return f"""<h2>{escape(title)}</h2>
<figure>{usable_by_size(found)}</figure>
{table(caption, (first.sizes, *HEADINGS), rows)}"""


def usable_by_size(found: list[tuple[str, Usability]]) -> str:
    """Draw which share of the cells can be used, by their true size, under every candidate."""
    labels = list(dict.fromkeys(part.label for _, one in found for part in one.by_size))
    marks = [
        Mark(
            kind="columns",
            x=[labels.index(part.label) for part in one.by_size],
            y=[part.usable for part in one.by_size],
            series=at,
        )
        for at, (_, one) in enumerate(found)
    ]
    across = Axis(title=found[0][1].sizes, classes=labels)
    up = Axis(title="cells that can be used", holds=(0, 1), text=percent)
    return draw_panels(
        [Panel(across, up, marks)],
        title="Cells that can be used",
        series=[label for label, _ in found],
        size=(400, 300),
    )


def _attacks(made: Preview) -> str:
    """Every attack, with what it discloses under each candidate."""
    tried: dict[tuple[str, str], dict[str, str]] = {}
    for found in made.candidates:
        for title, attack in found.assessment.attacks():
            rate = f"{attack.success_rate:.1%} of {attack.targets:,}" if attack.targets else "no target"
            tried.setdefault((title, attack.attack), {})[found.label] = rate
    labels = [found.label for found in made.candidates]
    rows = [(f"{title}: {name}", *(rates.get(label, "") for label in labels)) for (title, name), rates in tried.items()]
    return f"<h2>Attacks</h2>{table('What each discloses', ('attack', *labels), rows)}" if rows else ""


def _whole(found: Candidate, *, alone: bool) -> str:
    """The whole assessment of one candidate, folded where there are several."""
    return f"""<details{" open" if alone else ""}><summary><strong>All figures: {escape(found.label)}</strong></summary>
{report_body(found.assessment)}</details>"""
