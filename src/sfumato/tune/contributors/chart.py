"""The curve of risk against loss for one cell, in a file."""

from pathlib import Path

from sfumato.durable import write_durably
from sfumato.errors import MethodError
from sfumato.reproduce.chipperfield2019.charts import Mark, risk_against_loss
from sfumato.tune.contributors.tune import Answer


def write_chart(answer: Answer, file: Path) -> Path:
    """Draw the curve with the given and the optimal magnitudes on it: an SVG picture, or an HTML page with it."""
    if file.suffix not in (".svg", ".html"):
        raise MethodError(
            str(file), expected="a file that ends in .svg or .html", found=file.suffix or "no ending", do="rename it"
        )
    asked = answer.question
    marks = [
        Mark(label=label, loss=found.loss, risk=max(v.risk for v in found.verdicts if v.attack in asked.binding))
        for label, found in (("given", answer.given), ("optimal", answer.optimal))
        if found is not None
    ]
    numbers = ", ".join(str(attack.number) for attack in asked.binding)
    title = f"Contributors {asked.shape}: the worst of attacks {numbers}"
    drawn = risk_against_loss(answer.tried, title=title, marks=marks)
    if file.suffix == ".html":
        drawn = (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>\n'
            f"<body>{drawn}</body></html>\n"
        )
    write_durably(file, drawn.encode())
    return file
