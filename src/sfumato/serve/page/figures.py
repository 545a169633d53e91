"""How figures are written: with digits that fit their errors, in thousands or millions, as the reader wishes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.serve.core.model import Metric
from sfumato.serve.page.language import ENGLISH, Language
from sfumato.serve.page.question import Display
from sfumato.serve.page.rating import Numbers, absolute_error, relative_error
from sfumato.serve.page.view import View

SCALES = {"one": 1, "thousands": 1_000, "millions": 1_000_000}
"""What figures are divided by."""
_SIGNIFICANT = 2
"""Digits of an error that are worth writing; its figure ends where they do."""


@dataclass(frozen=True, kw_only=True)
class FigureWriter:
    """Writes the figures of a view."""

    metrics: tuple[Metric, ...]
    """All of the view, also those that only marks need."""
    percent: bool
    relative: bool
    """Whether errors are in percent of their figures."""
    scale: str
    say: Language
    fitting: bool
    """Whether digits end where the error makes them meaningless."""
    whole: frozenset[str] = frozenset()
    """The codes of errors that are whole numbers wherever they are shown."""

    @classmethod
    def of(cls, view: View, display: Display, say: Language = ENGLISH) -> "FigureWriter":
        """The writer that a reader wishes."""
        return cls(
            metrics=view.metrics,
            percent=view.percent,
            relative=display.errors == "relative",
            scale="one" if view.percent else display.scale,
            say=say,
            fitting=display.digits == "fitting",
            whole=frozenset(_whole(view)),
        )

    def scaled(self, metric: Metric) -> bool:
        """Whether the figures of a column are divided."""
        return self.scale != "one" and metric.kind not in ("rse", "other") and not self._is_share(metric)

    def decimals(self, metric: Metric) -> int:
        """How many digits after the point a figure of a column has at most."""
        if self._is_share(metric):
            return 1
        return 1 if self.scaled(metric) else 0 if metric.code in self.whole else metric.decimals

    def _is_share(self, metric: Metric) -> bool:
        shares = self.percent and metric.additive and metric.kind in ("value", "error", "low", "high")
        return shares or (self.relative and metric.kind == "error")

    def label(self, metric: Metric, beside: Sequence[Metric]) -> tuple[str, str]:
        """What stands above a column and its unit; an error beside its value need not say again what it is about."""
        label = metric.label
        for value in beside:
            if value.code == metric.about and label.startswith(f"{value.label}, "):
                label = label.removeprefix(f"{value.label}, ").capitalize()
        label = self.say.label(label)
        if metric.kind == "error" and self.relative:
            return label, self.say("% of the figure")
        shares = self.percent and metric.additive and metric.kind not in ("other", "rse")
        return label, "%" if shares or metric.kind == "rse" else self.say(self.scale) if self.scaled(metric) else ""

    def rows(self, values: Numbers, shown: int) -> list[list[str]]:
        """The first metrics of a block of figures, by row and column, as text; empty where there is none."""
        values = values.copy()
        steps = self._fitting_steps(values)
        places = {metric.code: at for at, metric in enumerate(self.metrics)}
        for at, metric in enumerate(self.metrics[:shown]):
            if self.relative and metric.kind == "error" and metric.about in places:
                found = relative_error(self.metrics, values, places[metric.about])
                assert found is not None
                values[..., at] = np.where(np.isfinite(found), found, np.nan)
                steps[..., at] = 0
        kinds = self.metrics[:shown]
        return [
            [
                self._written(value, metric, step)
                for column, ends in zip(row, fits, strict=True)
                for value, step, metric in zip(column, ends, kinds, strict=False)
            ]
            for row, fits in zip(values.tolist(), steps.tolist(), strict=True)
        ]

    def _fitting_steps(self, values: Numbers) -> Numbers:
        """What figures are rounded to: that of a value holds for its error and its interval as well; 0 is nothing."""
        steps: Numbers = np.zeros_like(values)
        if not self.fitting:
            return steps
        places = {metric.code: at for at, metric in enumerate(self.metrics)}
        for at, metric in enumerate(self.metrics):
            of = places.get(metric.about or metric.code)
            error = None if of is None or metric.kind in ("rse", "other") else absolute_error(self.metrics, values, of)
            if error is not None and of is not None:
                # An error beyond its scale leaves no digit certain: the figure keeps as many as an error has.
                steps[..., at] = _steps(np.where(np.isnan(error), np.abs(values[..., of]), error))
        return steps

    def _written(self, value: float, metric: Metric, step: float) -> str:
        if np.isnan(value):
            return ""
        divisor = SCALES[self.scale] if self.scaled(metric) else 1
        digits = self.decimals(metric)
        # Digits after the point as far as the step has them, and as far as the figure was published with.
        published = metric.decimals + len(str(divisor)) - 1 if divisor > 1 else digits
        if step:
            value = round(value / step) * step
            digits = min(_digits_to(step / divisor), published)
        elif divisor > 1 and value:  # what is not zero does not look like it
            digits = min(max(digits, _digits_to(abs(value) / divisor)), published)
        return self.say.figures(f"{value / divisor or 0.0:,.{digits}f}")


def _digits_to(size: float) -> int:
    """How many digits after the point there are up to the first one that a number of this size has."""
    return max(-int(np.floor(np.log10(size) + 1e-9)), 0)


def _whole(view: View) -> Iterator[str]:
    for at, metric in enumerate(view.metrics):
        figures = view.values[..., at]
        if metric.kind == "error" and (figures == np.rint(figures))[np.isfinite(figures)].all():
            yield metric.code


def _steps(errors: NDArray[np.float64]) -> Numbers:
    """What figures with such errors are rounded to: the last of the error's digits that are worth writing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = 10.0 ** (np.floor(np.log10(errors)) - (_SIGNIFICANT - 1))
    return np.where(np.isfinite(found) & (errors > 0), found, 0.0)


def format_figure(value: float, metric: Metric, *, percent: bool = False) -> str:
    """A figure with as many digits as are worth showing."""
    shares = percent and metric.additive and metric.kind in ("value", "error", "low", "high")
    return f"{value:,.{1 if shares else metric.decimals}f}"
