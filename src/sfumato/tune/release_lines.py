"""The lines of a release file that use what was found."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sfumato.frame import exact
from sfumato.privacy.guarantee import plain


def protect_line(method: str, epsilon: Fraction, options: Mapping[str, Any]) -> str:
    """How a table is protected, with the options of the method that are set.

    >>> protect_line("mose", Fraction(10), {"count_epsilon": Decimal("0.2"), "classes": ["state"], "clip": False})
    'protect = { method = "mose", epsilon = 10, count_epsilon = 0.2, classes = ["state"], clip = false }'
    """
    written = {"method": method, "epsilon": epsilon, **options}
    return f"protect = {{ {', '.join(f'{name} = {_toml(value)}' for name, value in written.items())} }}"


def budget_line(epsilon: Fraction, *, conditional: bool) -> str:
    """The budget of a release about people.

    >>> budget_line(Fraction("4.5"), conditional=False)
    'budget = { epsilon = 4.5, definition = "individuals" }'
    """
    accepted = ", conditional = true" if conditional else ""
    return f'budget = {{ epsilon = {_toml(epsilon)}, definition = "individuals"{accepted} }}'


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, int | float | Decimal | Fraction):
        text = plain(exact(value))
        return f'"{text}"' if "/" in text else text
    return f'"{value}"'
