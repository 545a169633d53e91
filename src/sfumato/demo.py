"""The demo: an economy, a release of several tables, and the confidential report, in one go."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sfumato.assess.assess import Assessment, assess
from sfumato.durable import write_durably
from sfumato.economy.generate import Economy, generate
from sfumato.errors import SfumatoError
from sfumato.release_file import load
from sfumato.run import STEPS, Published, run

_MARK = "demo.json"


@dataclass(frozen=True, kw_only=True)
class Tour:
    """What the demo made."""

    economy: Economy
    published: Published
    assessment: Assessment


def run_demo(
    folder: Path, *, jobs: int = 1_000_000, progress: Callable[[str, int, int], None] = lambda *_: None
) -> Tour:
    """Make an economy in a folder, publish its release and assess it.

    Run again in the same folder, it makes the same economy and gets the stored answers, at no charge.
    """
    again = _is_demo_of(folder, jobs)
    if not again:
        write_durably(folder / _MARK, json.dumps({"jobs": jobs}).encode())
    made = generate(
        folder,
        jobs=jobs,
        overwrite=again,
        progress=lambda done, total: progress("making an economy", done, total),
    )
    release = load(made.release)
    published = run(release, progress=lambda step: progress(step, STEPS.index(step), len(STEPS)))
    assessment = assess(release, progress=lambda step: progress(f"report: {step}", len(STEPS), len(STEPS)))
    return Tour(economy=made, published=published, assessment=assessment)


def _is_demo_of(folder: Path, jobs: int) -> bool:
    """Whether a folder holds a demo of this size; anything else in it is not the demo's to touch."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    try:
        found = int(json.loads((folder / _MARK).read_text(encoding="utf-8"))["jobs"])
    except (OSError, ValueError, KeyError, TypeError):
        found = 0
    if found == jobs:
        return True
    raise SfumatoError(
        f"demo folder {folder}",
        expected=f"a new folder, or a demo of {jobs:,} jobs",
        found=f"a demo of {found:,} jobs, whose budget is spent on other data" if found else "other files",
        do="choose another folder with --out",
    )
