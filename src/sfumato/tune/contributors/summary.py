"""What `sfumato tune top-contributors` says: risks and loss of given magnitudes, the best ones, and the curve."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.methods.contributor_calibration import Tried, frontier
from sfumato.methods.contributor_risk import Evaluation
from sfumato.reproduce.printed import spaced
from sfumato.tune.contributors.tune import Answer

_BAR = 30
_LEVELS = (0.5, 0.3, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01)
"""Risks of which the curve is printed."""


def contributors_summary(answer: Answer, chart: Path | None = None) -> tuple[RenderableType, dict[str, Any]]:
    """The answer as text for people and as data for machines."""
    asked, best = answer.question, frontier(answer.tried)
    lines: list[RenderableType] = [
        Text(
            f"Contributors {asked.shape}{f' and {asked.shape.rest:g} in smaller ones' if asked.shape.rest else ''}; "
            f"noise on 1 ± {asked.spread:g}{', parity rule' if asked.parity else ''}. Computed from the method alone."
        )
    ]
    if answer.given is not None:
        lines += _evaluation(answer, answer.given, "Given")
    if answer.optimal is not None:
        lines += _evaluation(answer, answer.optimal, f"Least loss that withstands {_attacks(answer)}")
    if answer.refusal is not None:
        lines.append(Text(str(answer.refusal), style="red"))
    if best.worst_risk.min() <= _LEVELS[0]:
        lines.append(_curve(answer, best))
    if chart is not None:
        lines.append(Text(f"Chart: {chart}"))
    return Group(*spaced(lines)), {
        "contributors": str(asked.shape),
        "rest": asked.shape.rest,
        "attacks": [attack.number for attack in asked.binding],
        "parity": asked.parity,
        "spread": asked.spread,
        "step": asked.step,
        "falling": asked.falling,
        "given": None if answer.given is None else _data(answer, answer.given),
        "optimal": None if answer.optimal is None else _data(answer, answer.optimal),
        "refusal": None if answer.refusal is None else str(answer.refusal),
        "curve": [
            {"m": m.tolist(), "loss": float(loss), "risk": float(risk)}
            for m, loss, risk in zip(best.magnitudes, best.loss, best.worst_risk, strict=True)
        ],
        "chart": None if chart is None else str(chart),
    }


def _evaluation(answer: Answer, found: Evaluation, words: str) -> Iterator[RenderableType]:
    yield Text(f"{words}: m = {listed(found)}, mean loss {found.loss:.1%} of the total", style="bold")
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("attack", "within", "risk", "at most", ""):
        table.add_column(heading, justify="left" if heading in ("attack", "") else "right")
    for verdict in found.verdicts:
        attack = verdict.attack
        mark = Text("kept", style="green") if verdict.is_met else Text("broken", style="bold red")
        if attack not in answer.question.binding:
            mark = Text(f"{mark.plain}, not asked for", style="dim")
        risk = f"{verdict.risk:.3f}"
        table.add_row(f"{attack.number}: {attack.words}", f"{attack.within:.0%}", risk, f"{attack.limit:g}", mark)
    yield table
    rule = "Without" if answer.question.parity else "With"
    yield Text(f"{rule} the parity rule the risk of attack 2 would be {_other(answer, found):.3f}.")


def _curve(answer: Answer, best: Tried) -> Table:
    """The least loss for some risks, as bars."""
    table = Table(box=None, title=f"Least loss by acceptable risk, {_attacks(answer)}", title_justify="left")
    for heading in ("risk", "loss", "m", ""):
        table.add_column(heading, justify="left" if heading == "" else "right")
    top = float(best.loss.max())
    for level in _LEVELS:
        reached = best.worst_risk <= level
        if reached.any():
            place = int(reached.argmax())
            loss = float(best.loss[place])
            bar = Text("█" * max(int(loss / top * _BAR), 1), style="dark_orange3")
            table.add_row(f"{level:g}", f"{loss:.1%}", ",".join(f"{m:g}" for m in best.magnitudes[place]), bar)
    return table


def _attacks(answer: Answer) -> str:
    numbers = [str(attack.number) for attack in answer.question.binding]
    return f"attack{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


def _other(answer: Answer, found: Evaluation) -> float:
    """The risk of attack 2 under the other rule for directions."""
    other = answer.question.evaluate(found.magnitudes, parity=not answer.question.parity)
    return next(verdict.risk for verdict in other.verdicts if verdict.attack.number == 2)


def _data(answer: Answer, found: Evaluation) -> dict[str, Any]:
    parity = "without_parity" if answer.question.parity else "with_parity"
    return {
        "m": list(found.magnitudes),
        "loss": found.loss,
        "attacks": [
            {
                "attack": verdict.attack.number,
                "v": verdict.attack.within,
                "risk": verdict.risk,
                "limit": verdict.attack.limit,
                "kept": verdict.is_met,
                **({parity: _other(answer, found)} if verdict.attack.number == 2 else {}),
            }
            for verdict in found.verdicts
        ],
    }


def listed(found: Evaluation) -> str:
    """Magnitudes as they are typed."""
    return ",".join(f"{magnitude:g}" for magnitude in found.magnitudes)
