"""Codes and keys as text, the same on every engine."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir


def text(column: "ir.Column", name: str) -> "ir.StringValue":
    """An attribute or key as the text of its code."""
    return (column if column.type().is_string() else column.cast("string")).name(name)
