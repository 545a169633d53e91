"""The claims about the server."""

from statistics import median

from bench.shared.report import Claim, Results, Section, another_size, limited, range_of, ratio_of
from bench.totals.records import RECORDS

_SHARE = 0.25
_LIVE = 2.0
_LAST, _BOOK = 2.0, 1.0


def server_section(results: Results) -> Section:
    """Every claim about the server, of a run whose answers were identical for all clients."""
    rounds = len(results["rounds"]["empty"])
    return Section(
        name="server",
        heading=f"{results['connections']} connections from a second process ({results['client']}), one server process",
        lines=(*_throughput(results), _errors(results), *_rush(results), *_live(results)),
        notes=(
            *another_size(results["live"]["records"], RECORDS, "records"),
            f"Medians of {rounds} rounds of a few seconds, in turn, each round in another order, over loopback; server "
            "and client share the cores. Shares are of the throughput of the address that does nothing. Processor time "
            "is that of the server, which other work on the machine disturbs less.",
            f"{results['clients']} clients at a time got identical answers to {results['identical']} questions.",
            "The ad-hoc table is timed in one process with DuckDB alone, in turn, from the question to the bytes of "
            "the answer, and gives the same bytes every time.",
        ),
    )


def _throughput(results: Results) -> list[Claim]:
    empty = [_rate(one) for one in results["rounds"]["empty"]]
    lines = []
    for name, found in results["rounds"].items():
        rates = [_rate(one) for one in found]
        cpu = 1_000 * median(one["cpu"] / one["requests"] for one in found)
        spread = f"{median(rates):,.0f} a second, {min(rates):,.0f}–{max(rates):,.0f}"
        figure = f"{spread}; {_latency(found)}; {cpu:.2f} ms of processor time each"
        if name == "empty":
            lines.append(Claim(what=results["labels"][name], figure=figure))
            continue
        share = median(rates) / median(empty)
        lines.append(
            Claim(
                what=results["labels"][name],
                figure=f"{share:.0%} ({figure})",
                target=f"≥ {_SHARE:.0%}",
                met=share >= _SHARE,
            )
        )
    return lines


def _errors(results: Results) -> Claim:
    every = [one for found in results["rounds"].values() for one in found]
    errors, requests = (int(sum(one[name] for one in every)) for name in ("errors", "requests"))
    return limited("Errors", errors, f"{errors} of {requests:,} requests", 0, "")


def _rush(results: Results) -> list[Claim]:
    if "rush" not in results:  # measured by an earlier version
        return []
    rush = results["rush"]
    last = [one["last"] for one in rush["stampede"]]
    refused = sum(n for one in rush["stampede"] for status, n in one["statuses"].items() if int(status) != 200)
    books = [one["seconds"] for one in rush["workbook"]]
    waited = 1_000 * median(one["p99"] for one in rush["workbook"])
    readers, cells = f"{rush['readers']} readers of one new page at a time", f"{rush['cells']:,} figures"
    return [
        limited(f"{readers}, until the last has it", median(last), range_of(last), _LAST, " s"),
        limited(f"{readers}: refused", refused, f"{refused}", 0, ""),
        limited(f"A workbook of {cells}", median(books), range_of(books), _BOOK, " s"),
        Claim(what="Others meanwhile, for an answer that is given at once", figure=f"p99 {waited:.0f} ms"),
    ]


def _live(results: Results) -> list[Claim]:
    live = results["live"]
    seconds, many = live["seconds"], f"{live['records']:,} records"
    floors = {
        "file": "the sum alone, of the Parquet file",
        "bare": "the sum alone, of narrow integers in memory",
        "floor": "what perturbation needs (sum, count, sum of keys, three largest), in memory",
    }
    lines = [
        Claim(what=f"DuckDB alone, {many} by three attributes: {said}", figure=range_of(seconds[name]))
        for name, said in floors.items()
    ]
    for name, said in floors.items():
        ratio, figure = ratio_of(seconds["live"], seconds[name])
        lines.append(limited(f"An ad-hoc table, beside {said}", ratio, figure, _LIVE, "×"))
    return lines


def _rate(found: dict[str, float]) -> float:
    return found["requests"] / found["seconds"]


def _latency(found: list[dict[str, float]]) -> str:
    p50, p99 = (1_000 * median(one[name] for one in found) for name in ("p50", "p99"))
    return f"p50 {p50:.0f} ms, p99 {p99:.0f} ms"
