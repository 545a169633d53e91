"""What `sfumato run` says of what it published."""

from typing import TYPE_CHECKING

from rich.text import Text

from sfumato.privacy.guarantee import at_least, at_most
from sfumato.publish.cubes import not_met
from sfumato.publish.people import operator_notes
from sfumato.publish.structure import number
from sfumato.terminal.layout import Summary, counted_parts, counted_tables, near
from sfumato.terminal.plan import plan_data

if TYPE_CHECKING:  # only names for types: each command imports what it runs
    from sfumato.run import Published


def run_summary(published: "Published") -> Summary:
    """What a run published, charged and left over."""
    balance = published.balance
    repeated = len(published.plan.parts) - len(published.charged) - len(published.finished)
    words = [published.totals.in_words(), f"Published {counted_parts(published.plan)} in {near(published.bundle)}."]
    if published.charged:
        words.append(f"{'Answered anew' if balance is None else 'Charged'}: {', '.join(published.charged)}.")
    if published.finished:
        named = ", ".join(published.finished)
        words.append(f"Charged before by a run that did not finish, and answered now at no further charge: {named}.")
    if repeated:
        counted = f"{repeated} cubes or tables" if published.plan.cubes else counted_tables(repeated)
        words.append(f"{counted.capitalize()} answered from what is stored, at no charge.")
    if balance is not None:
        words.append(
            f"Budget of {balance.account}: epsilon {at_most(balance.spent_epsilon)} of "
            f"{at_most(balance.budget.epsilon)} spent, {at_least(balance.remaining_epsilon)} left."
        )
    cubes = {cube.name: cube for cube in published.plan.cubes}
    words += [f"Cube {name}:{not_met(cubes[name], found)}".replace("**", "") for name, found in published.unmet.items()]
    words += operator_notes(published.plan)
    words.append("Read statement.md in the bundle: it says in plain words what readers can and cannot learn.")
    return Text("\n".join(words)), {
        "bundle": str(published.bundle),
        "read": published.totals.figures(),
        "charged": list(published.charged),
        "charged_before": list(published.finished),
        "data_changed": list(published.changes),
        "spent_epsilon": None if balance is None else number(balance.spent_epsilon),
        "remaining_epsilon": None if balance is None else number(balance.remaining_epsilon),
        "controls_not_met": {
            name: {"calibration": found.method, "cycles": found.cycles, "largest_gap_in_parts": found.largest_gap}
            for name, found in published.unmet.items()
        },
        **plan_data(published.plan),
    }
