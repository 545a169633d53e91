"""The demo: an economy, a release of several tables, and the confidential report, in one go."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
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

    Run again in the same folder, it uses the economy that is there and gets the stored answers, at no charge.
    """
    made = _made_before(folder, jobs)
    if made is None:
        made = generate(folder, jobs=jobs, progress=lambda done, total: progress("making an economy", done, total))
        counts = {name: value for name, value in asdict(made).items() if name != "folder"}
        write_durably(folder / _MARK, json.dumps(counts).encode())
    release = load(made.release)
    published = run(release, progress=lambda step: progress(step, STEPS.index(step), len(STEPS)))
    assessment = assess(release, progress=lambda step: progress(f"report: {step}", len(STEPS), len(STEPS)))
    return Tour(economy=made, published=published, assessment=assessment)


def _made_before(folder: Path, jobs: int) -> Economy | None:
    """The economy of an earlier demo of this size; anything else in the folder is not the demo's to touch."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    try:
        made = Economy(folder=folder, **json.loads((folder / _MARK).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        made = None
    if made is not None and made.jobs == jobs:
        return made
    raise SfumatoError(
        f"demo folder {folder}",
        expected=f"a new folder, or a demo of {jobs:,} jobs",
        found="other files" if made is None else f"a demo of {made.jobs:,} jobs, whose budget is spent on other data",
        do="choose another folder with --out",
    )
