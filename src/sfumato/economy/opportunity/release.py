"""The release file that comes with children of tracts: predicted ranks by tract, race and gender."""

from collections.abc import Sequence

from sfumato.economy.codelists import Codelist
from sfumato.economy.files import attributes_text

_HEAD = """\
# Publish it with `sfumato run release.toml`; docs/methods/small-samples.md explains the method.

[release]
title = "Income ranks of children, by where they grew up"
population = "children"
period = "1978-1983"
# The predictions are not differentially private: what they cost holds on a condition, which `conditional` accepts.
budget = { epsilon = 17, definition = "individuals", conditional = true }

[data]
engine = "duckdb"
records = { path = "children.parquet", unit = "child" }

[data.attributes]
"""
_TAIL = """
[data.measures]
parent_rank = { label = "Income rank of the parents", unit = "0.01 percentiles", minimum = 0, maximum = 10000 }
kid_rank = { label = "Income rank of the child", unit = "0.01 percentiles", minimum = 0, maximum = 10000 }

# Of epsilon, 8 for each of the two predictions, as in the Opportunity Atlas, and 1 for the number of children.
[[table]]
name = "ranks"
title = "Predicted income rank of children of parents at the 25th and the 75th percentile"
predict = { outcome = "kid_rank", on = "parent_rank", at = [2500, 7500] }
by = ["tract", "race", "gender"]
decimals = 0
protect = { method = "mose", epsilon = 17, count_epsilon = 1, classes = ["state", "gender", "race"] }
"""


def release_text(codelists: Sequence[Codelist]) -> str:
    """The text of the release file on children with these attributes."""
    return _HEAD + attributes_text(codelists) + _TAIL
