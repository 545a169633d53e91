"""Draw the picture of the README from the demo's synthetic economy: python docs/make_pictures.py."""

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import vl_convert

from sfumato.assess.drawing import error_by_size, true_against_protected
from sfumato_lab.commands.demo import run_demo

PICTURE = Path(__file__).parent / "images" / "demo.png"
_JOBS = 1_000_000
_PAPER, _GAP, _MARGIN = "#fffdf9", 30.0, 16.0


def main() -> None:
    """Run the demo in a temporary folder and put both charts of its first table side by side.

    The economy is the same every time and the noise is not, so the picture differs a little from run to run.
    """
    with TemporaryDirectory() as folder:
        first = run_demo(Path(folder) / "demo", jobs=_JOBS).assessment.utilities[0]
    PICTURE.parent.mkdir(exist_ok=True)
    drawing = _side_by_side(true_against_protected(first), error_by_size(first))
    PICTURE.write_bytes(vl_convert.svg_to_png(drawing, scale=1.5))  # a fifth of what the dots take as SVG
    sys.stdout.write(f"{PICTURE.name}: written\n")


def _side_by_side(*charts: str) -> str:
    x, height, parts = _MARGIN, 0.0, []
    for number, chart in enumerate(charts):
        width, tall = (float(re.search(rf'<svg[^>]* {side}="([\d.]+)"', chart)[1]) for side in ("width", "height"))
        alone = re.sub(r"\b(clip|gradient_)(\d+)\b", rf"\g<1>{number}_\2", chart)  # names must differ within one file
        parts.append(alone.replace("<svg ", f'<svg x="{x}" y="{_MARGIN}" ', 1))
        x, height = x + width + _GAP, max(height, tall)
    width, height = x - _GAP + _MARGIN, height + 2 * _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}"><rect width="100%" height="100%" rx="8" fill="{_PAPER}"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    main()
