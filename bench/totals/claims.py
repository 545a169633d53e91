"""The claims about perturbed totals of records."""

from bench.shared.report import Claim, Results, Section, another_size, limited, range_of, ratio_of
from bench.totals.records import RECORDS

_TARGET = 1.5


def contributors_section(results: Results) -> Section:
    """Every claim about perturbed totals, of a run whose results passed the gate."""
    errors, rounds = results["mean_error"], len(results["seconds"]["floor"])
    return Section(
        name="contributors",
        heading=f"{results['records']:,} records, {results['cells']:,} cells of three attributes",
        lines=(*_warm(results), *_opening(results), *_commands(results), *_memory(results)),
        notes=(
            *another_size(results["records"], RECORDS, "records"),
            f"Medians of {rounds} rounds, with the fastest and the slowest, run in turn in one process, each round in "
            "another order, on records in memory; ratios of medians. Opening was timed once, whole commands three "
            "times.",
            "Every result was checked: the totals equal DuckDB's, number for number, asking again gives the same "
            f"answer, and published totals are {errors['observed']:.2%} from the true ones on average, where "
            f"{errors['expected']:.2%} is expected.",
        ),
    )


def _warm(results: Results) -> list[Claim]:
    runs, labels = results["seconds"], results["labels"]
    lines = [Claim(what=labels[name], figure=range_of(runs[name])) for name in ("bare", "floor", "packed")]
    for name, floor, target in (("ours", "floor", _TARGET), ("live", "floor", None)):
        ratio, figure = ratio_of(runs[name], runs[floor])
        lines.append(limited(labels[name], ratio, figure, target, "×"))
    lines.append(Claim(what="sfumato beside the packed query", figure=ratio_of(runs["ours"], runs["packed"])[1]))
    lines.append(Claim(what="sfumato beside the bare sum", figure=ratio_of(runs["ours"], runs["bare"])[1]))
    lines.append(Claim(what=labels["weighted_floor"], figure=range_of(runs["weighted_floor"])))
    figure = ratio_of(runs["weighted"], runs["weighted_floor"])[1]
    return [*lines, Claim(what=labels["weighted"], figure=figure)]


def _opening(results: Results) -> list[Claim]:
    words = {"floor": "Opening: DuckDB alone reads the records into memory"}
    return [
        Claim(what=words.get(name, f"Opening: sfumato, {name}"), figure=f"{seconds:.1f} s")
        for name, seconds in results["opening_seconds"].items()
    ]


def _commands(results: Results) -> list[Claim]:
    runs = results["command_seconds"]
    return [
        Claim(what="Whole command on the file: DuckDB alone", figure=range_of(runs["floor"])),
        Claim(
            what="Whole command on the file: `sfumato run`, first validation",
            figure=ratio_of(runs["ours"], runs["floor"])[1],
        ),
    ]


def _memory(results: Results) -> list[Claim]:
    words = {
        "floor": "DuckDB alone, records in memory",
        "ours": "`sfumato run`",
        "live": "live tables, opened and asked once",
    }
    return [
        Claim(what=f"Peak memory: {words[name]}", figure=f"{peak / 1e9:.2f} GB")
        for name, peak in results["peak_bytes"].items()
    ]
