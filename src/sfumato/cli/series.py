"""What commands say of a series: which version of a period there is, and what a run would change or has changed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from sfumato.cli.screen import Summary, near

if TYPE_CHECKING:  # only names for types
    from sfumato.bundle.versions import Version
    from sfumato.checking import Findings
    from sfumato.release import Release
    from sfumato.running import Published

PeriodOption = Annotated[
    str | None,
    typer.Option("--period", metavar="PERIOD", help="Of a series: the period, such as 2026Q3, 2026-07 or 2026."),
]


def edition_words(findings: "Findings") -> list[str]:
    """What `sfumato run` would do to a series."""
    edition = findings.edition
    if edition is None:
        return []
    if edition.is_published and edition.newest is not None:
        when = f"{edition.newest.period} was published on {edition.newest.published}"
        return [f"{when}, from these data: `sfumato run` changes nothing."]
    return [f"{edition.in_words()}; `sfumato run` wants its reason, --revise."] if edition.is_revision else []


def unchanged_summary(published: "Published", version: "Version") -> Summary:
    """That a period is published already, and nothing was to be done."""
    when = f"{version.period} was published on {version.published}, from these data: nothing to do."
    return Text(f"{when} Nothing was charged, and {near(published.bundle)} is as it was."), {
        **version_data(version),
        "bundle": str(published.bundle),
        "unchanged": True,
        "charged": [],
    }


def version_words(version: "Version") -> list[str]:
    """Which version of which period was published, and what a revision changed."""
    from sfumato.bundle.versions import revision_in_words

    if version.number == 1:
        return [f"{version.period} is new in the series; all other periods are as they were."]
    return [
        f"{version.period} was revised: this is version {version.number}, and the earlier one stays readable.",
        *revision_in_words(version.changes),
    ]


def version_data(version: "Version") -> dict[str, Any]:
    """The version as fields, for machines."""
    return {"period": version.period, "version": version.described()}


def earlier_release(file: Path, period: str | None, named: Path) -> "Release":
    """The release of an earlier period: another file, or the same file of a series."""
    from sfumato.release import load

    return load(named) if period is None or named.exists() else load(file, str(named))
