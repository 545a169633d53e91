"""What the confidential report says of graphs: paths and centralities, and what protection does to them."""

from html import escape
from math import isnan

from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
from sfumato.measures.drawing import table
from sfumato.statistics.panel.network import NetworkComparison, PathLengths
from sfumato.statistics.panel.tabulate_graph import Network


def network_section(network: Network | None) -> str:
    """The graph of workers and employers that the tables are about."""
    if network is None:
        return ""
    rows = [
        ("workers", f"{network.workers:,}"),
        ("employers", f"{network.employers:,}"),
        ("jobs", f"{network.jobs:,}"),
        ("workers with one employer only", f"{network.single:.1%}"),
        ("pairs of employers that share a worker", f"{network.edges:,}"),
        ("other employers that an employer shares workers with: median, largest", _middle(network.degrees)),
        ("workers that such a pair shares: median, largest", _middle(network.multiplicities)),
        ("components", f"{network.components:,}"),
        ("employers in the largest component", f"{network.largest_component:.1%}"),
        (f"steps between two employers, from {network.paths.sources:,} of them", _steps(network.paths)),
    ]
    spread = (
        (name, f"{found.median:.3g}", f"{found.largest:.3g}", f"{found.top:.1%}")
        for name, found in network.centralities.items()
    )
    headings = ("centrality of an employer", "median", "largest", "the highest 1% have")
    return (
        "<h2>The graph</h2>"
        + table("Workers and employers", ("what", "found"), rows)
        + table("Who is in the middle", headings, spread)
    )


def _steps(paths: PathLengths) -> str:
    """How many steps apart nodes are, in short."""
    shares = "; ".join(f"{steps}: {share:.1%}" for steps, share in enumerate(paths.shares, start=1))
    return f"{paths.mean:.2f} on average ({shares}); {paths.reached:.1%} are linked at all"


def comparison_section(found: NetworkComparison) -> str:
    """What protection does to the graph between the classes of a table."""
    rows = [
        (name, _known(order, ".3f"), _known(relative, ".1%")) for name, (order, relative) in found.centralities.items()
    ]
    true, published = found.paths
    caption = f"{found.title}: the graph of its {found.classes:,} classes, true and published"
    text = f"Steps from one class to another: {_steps(true)}; published: {_steps(published)}."
    headings = ("centrality", "rank correlation", "off by, of the whole")
    return table(caption, headings, rows) + f"<figure>{strengths_of_classes(found)}</figure><p>{escape(text)}</p>"


def strengths_of_classes(found: NetworkComparison) -> str:
    """Draw classes by what links them to others, true and published; on the line nothing was changed."""
    true, published = found.strengths
    top = max(*true, *published, 10.0)
    marks = [Mark(kind="points", x=true, y=published, series=0), Mark(kind="line", x=(0, top), y=(0, top))]
    across, up = (Axis(title=f"{word} strength", kind="symlog", constant=3) for word in ("true", "published"))
    return draw_panels([Panel(across, up, marks)], title="Links of every class with others", size=(340, 300))


def _middle(spread: tuple[float, int]) -> str:
    return f"{spread[0]:,.0f}, {spread[1]:,}"


def _known(value: float, form: str) -> str:
    return "" if isnan(value) else format(value, form)
