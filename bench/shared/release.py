"""Release files of the benchmark: what they have in common, and what earlier runs left of them."""

import json
import shutil
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # floors are measured without sfumato in their memory
    from sfumato.release import Release


def listed(names: Iterable[str]) -> str:
    """A list in TOML."""
    return json.dumps(list(names))


def codelists(names: Iterable[str]) -> str:
    """The attributes of an economy, with the codelists that come with it."""
    return "\n".join(f'{name} = {{ codelist = "codelists/{name}.csv" }}' for name in names)


def numbered(attributes: Iterable[tuple[str, list[str]]]) -> str:
    """Attributes with their codes, where no codelist comes with the data."""
    return "\n".join(f"{name} = {{ codes = {listed(codes)} }}" for name, codes in attributes)


def forget(release: "Release", *, validated: bool = False) -> None:
    """Remove what earlier runs left, so that everything is charged, counted, protected and written anew.

    What is remembered of files that were validated may be kept.
    """
    kept = {release.store / "memory.json"} if validated else set()
    for path in {
        *release.ledger.parent.glob(f"{release.ledger.name}*"),
        *release.store.glob("*"),
        release.bundle,
    } - kept:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
