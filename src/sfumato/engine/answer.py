"""Answer the questions of a release: each kind by its own query, with one scan of the records for each kind."""

from collections.abc import Mapping

from sfumato.cells import Cells
from sfumato.engine.connect import Tables
from sfumato.engine.factor_table import factors_of
from sfumato.engine.indicators import indicators
from sfumato.engine.pairs import pairs
from sfumato.engine.question import Asked, IndicatorQuestion, PairQuestion, Question
from sfumato.engine.tabulate import tabulate
from sfumato.frame import Frame
from sfumato.keys import Secret


def answer(frame: Frame, tables: Tables, asked: Mapping[str, Asked], secret: Secret | None) -> dict[str, Cells]:
    """The true cells of every question, with the columns that its method needs; `secret` holds the factors' key."""
    factors = None if secret is None else factors_of(secret)
    counts = {name: question for name, question in asked.items() if isinstance(question, Question)}
    found = tabulate(frame, tables, counts, factors) if counts else {}
    histories = {name: question for name, question in asked.items() if isinstance(question, IndicatorQuestion)}
    graphs = {name: question for name, question in asked.items() if isinstance(question, PairQuestion)}
    if factors is None and (histories or graphs):
        raise ValueError("indicators, flows and graphs need the key of their factors")
    if factors is not None and histories:
        found |= indicators(frame, tables, histories, factors)
    if factors is not None and graphs:
        found |= pairs(frame, tables, graphs, factors)
    return {name: found[name] for name in asked}
