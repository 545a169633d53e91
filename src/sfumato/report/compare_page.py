"""What a comparison found, and its confidential page: charts where people would rather look, and the figures."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from sfumato.charts.shares import Row, draw_grid, draw_shares
from sfumato.measures.comparison import IN_SHORT, PERCENT, Loss
from sfumato.measures.drawing import table
from sfumato.privacy.guarantee import at_most
from sfumato.report.candidates import AS_WRITTEN
from sfumato.report.trials import SIZE, Outcome, TableLoss

NOTE = (
    "CONFIDENTIAL COMPARISON: computed from true values, of answers drawn on trial and thrown away. Nothing was "
    "charged, kept or published, and nothing can be published from it. Do not publish this or pass it on."
)
CHOOSING = (
    "Whoever chooses a method or its parameters by these figures reveals something by the choice, which no guarantee "
    "covers. Compare on earlier, synthetic or public data; or fix beforehand by which rule one candidate is taken."
)
_MOST_COLUMNS = 12
"""Strata of more codes are in tables alone."""
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
    """The page below its heading: pictures first, and how to read them at the end."""
    said = "".join(f"<p>{escape(words)}</p>" for words in explanations(made))
    tables = "".join(_table(made, name, title) for name, title in made.tables.items())
    left = len(_left_out(made))
    gone = f" Not everything could be tried: {left} left out, with reasons at the end." if left else ""
    begin = f"{len(made.outcomes)} ways to protect the same tables.{gone}"
    after = f"<h2>How to read this page</h2>{said}{_overview(made)}{_own_attacks(made.outcomes)}{_reasons(made)}"
    return f"<p><strong>{escape(CHOOSING)}</strong></p><p>{escape(begin)}</p>{tables}{after}"


def losses_of(made: Comparison, name: str) -> list[tuple[Outcome, TableLoss]]:
    """One table under every candidate that has it."""
    return [(found, one) for found in made.outcomes for one in found.tables if one.name == name]


def _overview(made: Comparison) -> str:
    rows = [
        (
            _named(found),
            "none" if found.epsilon is None else at_most(found.epsilon),
            f"{found.trials}",
            f"{len(found.tables)} of {len(made.tables)}",
        )
        for found in made.outcomes
    ]
    return table("Candidates", ("candidate", "epsilon of all tables", "trials", "tables"), rows)


def _named(found: Outcome) -> str:
    """What a candidate is called on the page."""
    return f"{found.label}: {found.method}" if found.label == AS_WRITTEN else found.label


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
    parts += [f"<figure>{chart}</figure>" for chart in charts(found, made.accuracy, made.strata)]
    parts.append(
        table("All cells", ("candidate", *HEADINGS), [(_named(one), *loss_row(loss.all)) for one, loss in found])
    )
    parts.append(_attacks(found))
    parts += [_by(found, what) for what in (SIZE, *made.strata)]
    return "".join(parts)


def charts(found: Sequence[tuple[Outcome, TableLoss]], accuracy: float, strata: Sequence[str] = ()) -> Iterator[str]:
    """What becomes of the cells of one table beside what attacks find out, and where cells can be used."""
    tried = {one.attack: one.targets for _, loss in found for one in loss.attacks}
    names = [_named(outcome) for outcome, _ in found]
    rows = []
    for outcome, loss in found:
        rates = {one.attack: one.rate for one in loss.attacks}
        usable, withheld = loss.all.usable or 0.0, loss.all.withheld or 0.0
        parts = (usable, max(1 - usable - withheld, 0.0), withheld)
        rows.append(Row(_named(outcome), parts, [rates.get(name) for name in tried]))
    yield draw_shares(
        rows,
        whole="What readers get: of all cells",
        parts=(
            f"can be used: off by at most {100 * accuracy:.3g} %",
            "published, but off by more",
            "withheld, or merged into a coarser one",
        ),
        above="What attackers find, of what true numbers tell",
        beside=[f"{IN_SHORT[name]}: {targets:,}" for name, targets in tried.items()],
        name="What readers get, and what attackers find",
    )
    for what in (SIZE, *strata):
        labels = list(dict.fromkeys(part.label for _, loss in found for part in loss.losses.get(what, ())))
        if not 1 < len(labels) <= _MOST_COLUMNS:
            continue
        shares = [[known.get(one) for one in labels] for known in _by_label(found, what, "usable")]
        over = f"by true {what}" if what == SIZE else f"by {what}"
        yield draw_grid(
            list(zip(names, shares, strict=True)),
            labels,
            title="Where cells can be used",
            over=over,
            name=f"Cells that can be used, {over}",
        )
        errors = [[known.get(one) for one in labels] for known in _by_label(found, what, "median_relative")]
        yield draw_grid(
            list(zip(names, errors, strict=True)),
            labels,
            title="Typical error of published cells",
            over=f"the median in percent, {over}",
            name=f"Typical error, {over}",
            wanted=False,
        )


def _by_label(found: Sequence[tuple[Outcome, TableLoss]], what: str, figure: str) -> list[dict[str, float | None]]:
    """One figure of every candidate by the labels of groups of cells."""
    return [{part.label: getattr(part, figure) for part in loss.losses.get(what, ())} for _, loss in found]


def attack_rows(found: Sequence[tuple[Outcome, TableLoss]]) -> tuple[list[str], list[tuple[str, ...]]]:
    """The attacks that are tried on all, and what each discloses under every candidate."""
    names = list(dict.fromkeys(one.attack for _, loss in found for one in loss.attacks))
    rates = [(_named(outcome), {one.attack: one.words for one in loss.attacks}) for outcome, loss in found]
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
