"""Draw the picture of the README from the demo's synthetic economy: python docs/make_pictures.py."""

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from sfumato.charts.svg import PAPER
from sfumato.measures.drawing import error_by_size, true_against_protected
from sfumato_lab.commands.demo import run_demo

PICTURE = Path(__file__).parent / "images" / "demo.png"
_JOBS = 1_000_000


def main() -> None:
    """Run the demo in a temporary folder and put both charts of its first table side by side.

    The economy is the same every time and the noise is not, so the picture differs a little from run to run.
    """
    with TemporaryDirectory() as folder:
        first = run_demo(Path(folder) / "demo", jobs=_JOBS).assessment.utilities[0]
    PICTURE.parent.mkdir(exist_ok=True)
    charts = true_against_protected(first) + error_by_size(first)
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        page = browser.new_page(device_scale_factor=1.5)
        page.set_content(
            f"<div style='display: inline-flex; gap: 30px; padding: 16px; background: {PAPER}'>{charts}</div>"
        )
        page.locator("div").screenshot(path=PICTURE)  # a fifth of what the dots take as SVG
        browser.close()
    sys.stdout.write(f"{PICTURE.name}: written\n")


if __name__ == "__main__":
    main()
