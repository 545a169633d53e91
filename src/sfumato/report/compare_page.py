"""What a comparison found, and its confidential page: charts where people would rather look, and the figures."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from sfumato.charts.plots import Axis, Bar, Group, Mark, Panel, draw_bars, draw_panels
from sfumato.charts.svg import percent
from sfumato.measures.comparison import PERCENT, Loss
from sfumato.measures.drawing import table
from sfumato.privacy.guarantee import at_most
from sfumato.report.trials import SIZE, Outcome, TableLoss

NOTE = (
    "CONFIDENTIAL COMPARISON: computed from true values, of answers drawn on trial and thrown away. Nothing was "
    "charged, kept or published, and nothing can be published from it. Do not publish this or pass it on."
)
CHOOSING = (
    "Whoever chooses a method or its parameters by these figures reveals something by the choice, which no guarantee "
    "covers. Compare on earlier, synthetic or public data; or fix beforehand by which rule one candidate is taken."
)
TRIED_ON_ALL = "The same attacks on all: what is disclosed, of what true numbers would disclose"
HEADINGS = (
    *("cells", "withheld", "value withheld", "usable", "median error", "mean error"),
    *("median error in %", "rank correlation", "error / legacy", "loss / legacy"),
)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Ways to protect one release side by side, and the page that shows them; confidential."""

    outcomes: tuple[Outcome, ...]
    not_made: Mapping[str, str]
    """Candidates that could not be made of these data, each with the reason."""
    legacy: str
    """The candidate that errors of others are ratios to."""
    accuracy: float
    trials: int
    seed: int
    strata: tuple[str, ...]
    report: Path

    @property
    def tables(self) -> dict[str, str]:
        """The title of every table that any candidate has, by its name."""
        return {one.name: one.title for found in self.outcomes for one in found.tables}

    def data(self) -> dict[str, Any]:
        """All figures for machines."""
        return {
            "confidential": True,
            "note": NOTE,
            "choosing": CHOOSING,
            "legacy": self.legacy,
            "accuracy": self.accuracy,
            "trials": self.trials,
            "seed": self.seed,
            "by": list(self.strata),
            "report": str(self.report),
            "candidates": [found.data() for found in self.outcomes],
            "not_made": dict(self.not_made),
        }


def loss_row(loss: Loss) -> tuple[str, ...]:
    """The figures of one group of cells, under `HEADINGS`."""
    return (
        f"{loss.cells:,}",
        _share(loss.withheld),
        _share(loss.value_withheld),
        _share(loss.usable),
        _amount(loss.median_error),
        _amount(loss.mean_error),
        _share(loss.median_relative),
        "" if loss.spearman is None else f"{loss.spearman:.4f}",
        _ratio(loss.error_ratio),
        _ratio(loss.loss_ratio),
    )


def explanations(made: Comparison) -> list[str]:
    """What the figures mean, in plain words."""
    legacy = f"'{made.legacy}'" if made.legacy else "there is none"
    return [
        f"Cells with nothing in them are left out, but for both ratios. A cell is usable if it is published and "
        f"off by no more than {100 * made.accuracy:.3g} % of its value; a cell that is withheld, or merged into a "
        "coarser one, is not.",
        "Errors and the rank correlation are of published cells alone: a method that publishes few, and true ones, has "
        "no error there. Read them beside what is withheld.",
        f"The legacy is {legacy}. The ratio of errors is over the cells that both publish; that of losses is over all "
        "cells, and counts one that is withheld as if 0 were published.",
        f"Attacks look for a contributor to within {PERCENT} %. A guarantee does not promise that no estimate comes so "
        "near: it bounds how far the odds between sizes within a factor of 1 + alpha change, whatever a reader knows, "
        "and no attack shows that. Rules without a guarantee are about such estimates, and about nothing else.",
        f"Methods with chance are averaged over {made.trials} trial{'s' * (made.trials > 1)}, those with a key over a "
        f"few keys made for it (seed {made.seed}); the key of the office is not used.",
    ]


def comparison_body(made: Comparison) -> str:
    """The page below its heading."""
    said = "".join(f"<p>{escape(words)}</p>" for words in explanations(made))
    tables = "".join(_table(made, name, title) for name, title in made.tables.items())
    after = _own_attacks(made.outcomes) + _reasons(made)
    return f"<p><strong>{escape(CHOOSING)}</strong></p>{_overview(made)}{said}{tables}{after}"


def losses_of(made: Comparison, name: str) -> list[tuple[Outcome, TableLoss]]:
    """One table under every candidate that has it."""
    return [(found, one) for found in made.outcomes for one in found.tables if one.name == name]


def _overview(made: Comparison) -> str:
    rows = [
        (
            found.label,
            "none" if found.epsilon is None else at_most(found.epsilon),
            f"{found.trials}",
            f"{len(found.tables)} of {len(made.tables)}",
        )
        for found in made.outcomes
    ]
    left = len(_left_out(made))
    said = (
        f"<p>Candidates, or tables of them, that are left out: {left}. The reasons are at the end.</p>" if left else ""
    )
    return table("Candidates", ("candidate", "epsilon of all tables", "trials", "tables"), rows) + said


def _left_out(made: Comparison) -> list[tuple[str, str]]:
    """Candidates and tables of candidates that are not compared, each with the reason."""
    left = [(f"{found.label}, {name}", why) for found in made.outcomes for name, why in found.left_out.items()]
    return [*left, *made.not_made.items()]


def _reasons(made: Comparison) -> str:
    items = "".join(f"<li><strong>{escape(what)}</strong>: {escape(why)}</li>" for what, why in _left_out(made))
    return f"<h2>Left out</h2><ul>{items}</ul>" if items else ""


def _table(made: Comparison, name: str, title: str) -> str:
    found = losses_of(made, name)
    parts = [f"<h2>{escape(title)}</h2>"]
    parts += [f"<figure>{chart}</figure>" for chart in charts(found)]
    parts.append(
        table("All cells", ("candidate", *HEADINGS), [(one.label, *loss_row(loss.all)) for one, loss in found])
    )
    parts.append(_attacks(found))
    parts += [_by(found, what) for what in (SIZE, *made.strata)]
    return "".join(parts)


def charts(found: Sequence[tuple[Outcome, TableLoss]]) -> Iterator[str]:
    """Usable cells, the error by size of the cell, and what attacks find out, of one table."""
    yield _bars(
        {one.label: loss.all.usable or 0.0 for one, loss in found},
        title="cells that can be used",
        name="Cells that can be used",
    )
    yield _error_by_size(found)
    tried = [(one.label, attack) for one, loss in found for attack in loss.attacks if attack.rate is not None]
    for name in dict.fromkeys(attack.attack for _, attack in tried):
        rates = {label: attack.rate or 0.0 for label, attack in tried if attack.attack == name}
        yield _bars(rates, title=f"disclosed: {name}", name=name)


def _bars(shares: Mapping[str, float], *, title: str, name: str) -> str:
    groups = [Group((label,), [Bar(share, share, share, f"{share:.0%}")], label) for label, share in shares.items()]
    return draw_bars(groups, (), title=title, name=name)


def _error_by_size(found: Sequence[tuple[Outcome, TableLoss]]) -> str:
    sizes = list(dict.fromkeys(part.label for _, loss in found for part in loss.losses.get(SIZE, ())))
    marks = []
    for at, (_, loss) in enumerate(found):
        known = [part for part in loss.losses.get(SIZE, ()) if part.median_relative is not None]
        marks.append(
            Mark(
                kind="columns",
                x=[sizes.index(part.label) for part in known],
                y=[part.median_relative or 0.0 for part in known],
                series=at,
            )
        )
    across = Axis(title=f"true {SIZE}", classes=sizes)
    up = Axis(title="typical (median) error of published cells", kind="symlog", constant=0.01, text=percent)
    return draw_panels(
        [Panel(across, up, marks)],
        title="Error by size of the cell",
        series=[one.label for one, _ in found],
        size=(560, 300),
    )


def attack_rows(found: Sequence[tuple[Outcome, TableLoss]]) -> tuple[list[str], list[tuple[str, ...]]]:
    """The attacks that are tried on all, and what each discloses under every candidate."""
    names = list(dict.fromkeys(one.attack for _, loss in found for one in loss.attacks))
    rates = [(outcome.label, {one.attack: one.words for one in loss.attacks}) for outcome, loss in found]
    return names, [(label, *(known.get(name, "") for name in names)) for label, known in rates]


def _attacks(found: Sequence[tuple[Outcome, TableLoss]]) -> str:
    names, rows = attack_rows(found)
    return table(TRIED_ON_ALL, ("candidate", *names), rows) if names else ""


def _by(found: Sequence[tuple[Outcome, TableLoss]], what: str) -> str:
    rows = [
        (f"{candidate.label}: {part.label}", *loss_row(part))
        for candidate, loss in found
        for part in loss.losses.get(what, ())
    ]
    if not rows:
        return ""
    return f"<details><summary>By {escape(what)}</summary>{table(f'By {what}', ('group', *HEADINGS), rows)}</details>"


def _own_attacks(outcomes: Sequence[Outcome]) -> str:
    """Attacks that are about one method, or one kind of table."""
    rows = [
        (f"{found.label}: {title}", attack.attack, f"{attack.success_rate:.1%} of {attack.targets:,}")
        for found in outcomes
        for title, attack in found.attacks
        if attack.targets
    ]
    headings = ("candidate and table", "attack", "disclosed")
    return f"<h2>Attacks on each method</h2>{table('Of the first trial', headings, rows)}" if rows else ""


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _amount(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.2f}" if abs(value) < 10**4 else f"{value:,.0f}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
