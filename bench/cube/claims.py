"""The claims about a cube of millions of cells."""

from statistics import median, quantiles

from bench.cube.survey import QUOTES
from bench.shared.report import Claim, Results, Section, another_size, limited, range_of


def cube_section(results: Results) -> Section:
    """Every claim about a cube, of a run whose results passed the gate."""
    rounds, asked = len(results["seconds"]["build"]), len(results["answer_seconds"]["dense"])
    return Section(
        name="cube",
        heading=f"A cube of {results['cells']:,} cells in ten dimensions, from {results['records']:,} records",
        lines=(*_making(results), *_opening(results), *_answering(results)),
        notes=(
            *another_size(results["records"], QUOTES, "records"),
            f"Making it: medians of {rounds} fresh processes, with the fastest and the slowest, and the largest of "
            f"their peaks. Answers: medians of {asked} random questions, each asked of all three in turn; ratios of "
            "medians, to the dense array. sfumato's answers have errors and marks, DuckDB's are bare sums.",
            "Every result was checked: the cube adds up to its controls, the noise has the variance that is expected, "
            "and all three give the same totals, number for number.",
        ),
    )


def _making(results: Results) -> list[Claim]:
    seconds, peak = results["seconds"], results["peak_bytes"] / 1e9
    return [
        Claim(what="Build the cube from a Parquet file of records", figure=range_of(seconds["build"])),
        limited(
            "Perturb two columns and calibrate to ten one-way and one three-way noisy table, least squares",
            median(seconds["protect"]),
            range_of(seconds["protect"]),
            60,
            " s",
        ),
        Claim(
            what=f"Write it as a Parquet file of {results['file_bytes'] / 1e6:.0f} MB",
            figure=range_of(seconds["write"]),
        ),
        limited("Peak memory of all three", peak, f"{peak:.2f} GB", 4, " GB"),
        Claim(what="`sfumato run`, with ledger and bundle", figure=f"{results['command_seconds']:.1f} s"),
    ]


def _opening(results: Results) -> list[Claim]:
    opening, first = results["opening_seconds"], results["first_answer_seconds"]
    return [
        limited("Open the cube of a bundle", median(opening), range_of(opening), 0.5, " s"),
        limited("The first answer", first, f"{first * 1e3:.0f} ms", 0.5, " s"),
        Claim(what="`sfumato query` from the prompt, everything included", figure=range_of(results["shell_seconds"])),
    ]


def _answering(results: Results) -> list[Claim]:
    seconds = results["answer_seconds"]
    ours = median(seconds["dense"])
    labels = {"file": "DuckDB over the Parquet file", "memory": "DuckDB, cells in memory"}
    return [
        limited("A random question: sfumato, dense array", 1e3 * ours, _spread(seconds["dense"]), 50, " ms"),
        *(
            Claim(
                what=f"…{label}",
                figure=f"{median(seconds[name]) / ours:.0f}× as long ({_spread(seconds[name])})",
            )
            for name, label in labels.items()
        ),
    ]


def _spread(seconds: list[float]) -> str:
    return f"{1e3 * median(seconds):.0f} ms, 19 in 20 below {1e3 * quantiles(seconds, n=20)[-1]:.0f} ms"
