"""Identifiers of SDMX from the names and codes of a bundle."""

import re
from collections.abc import Sequence

from sfumato.errors import SfumatoError
from sfumato.periods import number_of

_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9_@-]")
_MISREAD = re.compile(r"[_@-].*|\d+(?:e-?\d+)?|inf|infinity|nan|na|null|none|true|false", re.IGNORECASE)
_AGENCY = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z][A-Za-z0-9_-]*)*")
_TAKEN = ("ALL", "SDMX")
"""What stands for any agency, and who maintains the standard."""
_RESERVED = frozenset(
    [
        "TIME_PERIOD",
        "OBS_VALUE",
        "OBS_STATUS",
        "UNIT_MEASURE",
        "DECIMALS",
        "REPORTING_YEAR_START_DAY",
        "DATAFLOW",
        "STRUCTURE",
        "STRUCTURE_ID",
        "STRUCTURE_NAME",
        "ACTION",
        "SERIES_KEY",
        "OBS_KEY",
    ]
)
"""What the standard, or a column of its CSV, is called: no dimension may be."""


def code_id(code: str) -> str:
    """The identifier of a code, from which the code can be had back.

    A character that identifiers may not have is written as its number between dollar signs. An underscore goes before
    what a reader of CSV would take for a number, a truth value, a missing value or a formula, and before an underscore.

    >>> [code_id(code) for code in ("A", "200+", "01", "_T", "NA")]
    ['A', '200$2B$', '_01', '__T', '_NA']
    """
    written = _NOT_IN_AN_ID.sub(lambda found: f"${ord(found[0]):X}$", code)
    return f"_{written}" if not written or _MISREAD.fullmatch(written) else written


def period_id(code: str) -> str:
    """A quarter or year as SDMX writes it.

    >>> period_id("2025Q3"), period_id("2025")
    ('2025-Q3', '2025')
    """
    if "Q" not in code:
        return code
    return f"{number_of(code) // 4:04d}-Q{number_of(code) % 4 + 1}"


def component_ids(names: Sequence[str]) -> tuple[str, ...]:
    """Identifiers of dimensions: names in capitals, no two alike and none that the standard has a meaning for.

    >>> component_ids(["place", "place size", "2nd", "obs_value"])
    ('PLACE', 'PLACE_SIZE', 'D_2ND', 'OBS_VALUE_2')
    """
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Z0-9_-]", "_", name.upper())
        plain = plain if re.match(r"[A-Z]", plain) else f"D_{plain}"
        variations = (plain, *(f"{plain}_{number}" for number in range(2, len(names) + 3)))
        found.append(next(one for one in variations if one not in _RESERVED and one not in found))
    return tuple(found)


def checked_agency(agency: str) -> str:
    """The agency, if SDMX can write it."""
    if not _AGENCY.fullmatch(agency) or agency.upper() in _TAKEN:
        raise SfumatoError(
            "agency of SDMX, --agency",
            expected="letters, digits, _ and -, the first a letter, such as OFFICE or OFFICE.LABOUR; not SDMX, not all",
            found=repr(agency),
            do="choose an identifier of this form",
        )
    return agency


def own_id(agency: str) -> str:
    """What a part of an agency is called on the list of that agency, and as the sender of a message.

    >>> own_id("OFFICE.LABOUR"), own_id("OFFICE")
    ('LABOUR', 'OFFICE')
    """
    return agency.rpartition(".")[-1]
