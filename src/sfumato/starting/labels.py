"""What files of statistics packages say of their columns: words for them, labels of their codes, and periods.

That is metadata: whoever designed the file wrote it, and no record is in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.engine.formats import package_metadata
from sfumato.frame.sources import format_of

_PERIODS = {"%tm": "month", "%tq": "quarter"}
"""How Stata shows periods."""


@dataclass(frozen=True, kw_only=True)
class Labels:
    """The labels of the columns of a file, and of their codes."""

    columns: Mapping[str, str] = field(default_factory=dict)
    codes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    periods: Mapping[str, str] = field(default_factory=dict)
    """Columns that are shown as months or quarters."""


def labels_of(path: Path) -> Labels:
    """The labels that a file has; none where it is no file of Stata, SAS or SPSS."""
    kind = format_of(path.name)
    if kind not in ("stata", "sas", "spss") or not path.is_file():
        return Labels()
    about = package_metadata(path, kind)
    shown = {name: _PERIODS.get(str(how)[:3], "") for name, how in about.original_variable_types.items()}
    return Labels(
        columns={name: words.strip() for name, words in about.column_names_to_labels.items() if words},
        codes={
            name: {_code(value): str(label).strip() for value, label in labels.items()}
            for name, labels in about.variable_value_labels.items()
        },
        periods={name: period for name, period in shown.items() if period},
    )


def _code(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
