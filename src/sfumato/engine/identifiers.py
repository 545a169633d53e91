"""Identifiers of employers, where a rule depends on how they are written."""

from sfumato.engine.connect import Tables
from sfumato.engine.text import text
from sfumato.errors import DataError
from sfumato.frame import Frame
from sfumato.noise.edges import CHARACTERS


def refuse_other_lengths(frame: Frame, tables: Tables) -> None:
    """Refuse identifiers that the rule for twelve characters cannot read; messages quote none of them."""
    if tables.workplaces is None or frame.workplaces is None:
        raise ValueError("edges need the table of workplaces")
    names = text(tables.workplaces[frame.workplaces.key], "_name")
    others = int((names.length() != CHARACTERS).sum().fill_null(0).execute())
    if others:
        raise DataError(
            f"workplaces, key '{frame.workplaces.key}'",
            expected=f"identifiers of {CHARACTERS} characters, which the rule for edges compares at places 8 and 9",
            found=f"{others:,} of another length",
            do='write edges = "keyed" in the tables of flows and graphs, or correct the identifiers',
        )
