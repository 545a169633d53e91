"""The metrics of a table or cube: which figures its cells have, in words, with units and digits."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from sfumato.cube.section import COUNT, WEIGHTED
from sfumato.serve.cube_figures import CubeMetric
from sfumato.serve.model import VALUE, Metric, free_name

Kind = Literal["value", "error", "rse", "low", "high", "other"]
_KINDS: dict[str, tuple[Kind, str]] = {
    "error": ("error", "Error, upper estimate"),
    "rse": ("rse", "Relative standard error"),
    "low": ("low", "Lower end of the 90 % interval"),
    "high": ("high", "Upper end of the 90 % interval"),
    "convergence_ratio": ("other", "Jobs for each employer"),
    "establishments": ("other", "Establishments"),
    "count": ("other", "Number of people"),
}
_UNITS = {
    "count": "people",
    "rse": "percent",
    "convergence_ratio": "jobs for each employer",
    "establishments": "establishments",
}
_DECIMALS = {"error": 2, "rse": 1, "convergence_ratio": 2}


def table_metrics(about: Mapping[str, Any], schema: pa.Schema) -> tuple[Metric, ...]:
    """The metrics of a published table, in the order of the bundle's description: the value first."""
    decimals = {name: 2 if pa.types.is_floating(schema.field(name).type) else 0 for name in about["columns"]}
    value = _value_code(about)
    metrics = [
        Metric(
            code=value,
            label=_label(about),
            unit=about["unit"],
            decimals=decimals[VALUE],
            kind="value",
            description=_described(about),
            additive=not {"mean", "indicators", "predict", "quantiles"} & about["statistic"].keys(),
        )
    ]
    estimated = {"mean", "predict", "quantiles"} & about["statistic"].keys()
    for name, text in about["columns"].items():
        if name in _KINDS:
            kind, label = _KINDS[name]
            if name == "error" and estimated:
                label = "Standard error of the protection"
            metrics.append(
                Metric(
                    code=name,
                    label=label,
                    unit=_UNITS.get(name, about["unit"]),
                    decimals=_DECIMALS.get(name, decimals[name]),
                    kind=kind,
                    about=None if kind == "other" else value,
                    description=text,
                )
            )
    return tuple(metrics)


def _value_code(about: Mapping[str, Any]) -> str:
    """The code of the value, made from the statistic: jobs, turnover, mean_earnings.

    It is never "value" itself: PxWeb 2 takes an object with a key of that name for a single figure and shows nothing.
    """
    ((statistic, asked),) = about["statistic"].items()
    words = {"total": f"{asked}", "mean": f"mean {asked}", "indicators": "indicators"}.get(statistic, about["unit"])
    code = re.sub(r"\W+", "_", words.lower()).strip("_") or statistic
    dimensions = [dimension["name"] for dimension in about["dimensions"]]
    return free_name(code, [VALUE, *_KINDS, "status", "reliability", *about["columns"], *dimensions])


def _label(about: Mapping[str, Any]) -> str:
    ((statistic, asked),) = about["statistic"].items()
    if statistic in ("total", "mean"):
        return f"{str(asked).replace('_', ' ').capitalize()}, {statistic}"
    return "Value" if statistic == "indicators" else str(about["unit"]).capitalize()


def _described(about: Mapping[str, Any]) -> str:
    text = str(about["columns"][VALUE])
    units = about.get("units", {})
    if not units:
        return text
    return f"{text}; {', '.join(f'{code}: {unit}' for code, unit in units.items())}"


def cube_metrics(
    measures: Sequence[str], *, population: str, weighted: bool, sampled: bool
) -> tuple[tuple[Metric, ...], tuple[CubeMetric, ...]]:
    """The metrics of a cube and where each comes from: totals and means, each followed by its standard error."""
    total, mean = ("Weighted total", "Weighted mean") if weighted else ("Total", "Mean")
    noise = "noise alone"
    both = "sampling and noise" if sampled else noise

    def pairs() -> Iterator[tuple[Metric, CubeMetric]]:
        if weighted:
            label = f"Weighted number of {population}"
            yield from _pair(WEIGHTED, "total", WEIGHTED, label=label, unit=population, of=both)
        yield from _pair(COUNT, "total", COUNT, label="Records", unit="records", of=noise)
        for name in measures:
            words = name.replace("_", " ")
            yield from _pair(name, "total", name, label=f"{total} of {words}", unit=words, of=noise)
            yield from _pair(f"mean_{name}", "mean", name, label=f"{mean} of {words}", unit=words, of=both)

    found = list(pairs())
    return tuple(metric for metric, _ in found), tuple(figure for _, figure in found)


def _pair(
    code: str, statistic: Literal["total", "mean"], column: str, *, label: str, unit: str, of: str
) -> Iterator[tuple[Metric, CubeMetric]]:
    decimals = 2 if statistic == "mean" else 1
    yield (
        Metric(
            code=code,
            label=label,
            unit=unit,
            decimals=decimals,
            kind="value",
            description=label,
            additive=statistic == "total",
        ),
        CubeMetric(statistic=statistic, column=column, error=False),
    )
    yield (
        Metric(
            code=f"{code}_error",
            label=f"{label}, standard error",
            unit=unit,
            decimals=decimals,
            kind="error",
            about=code,
            description=f"expected standard error of {of}",
        ),
        CubeMetric(statistic=statistic, column=column, error=True),
    )
