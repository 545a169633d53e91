"""Compare ways to protect the tables of a release on the office's own data: what each loses, and what it tells.

The true data are counted once, every candidate answers on trial and is measured, and all answers are thrown away.
Ledger, store, bundle and key stay as they are to the byte, and nothing can be published from a comparison: it gives
back figures and no cells. docs/compare.md says what it does not say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.checking import Progress, Step, checked
from sfumato.errors import MethodError, ReleaseError
from sfumato.measures.usability import ACCURACY
from sfumato.paths import refuse_other
from sfumato.release import Release
from sfumato.report.candidates import Wanted, by_default, refuse_strange, refuse_too_many, why_not
from sfumato.report.compare_page import NOTE, Comparison, comparison_body
from sfumato.report.page import BEGINS, write_page
from sfumato.report.trials import Candidate, Outcome, Trials, refuse_unknown_strata

ALPHAS = (Fraction("0.05"), Fraction("0.1"))
EPSILONS = (Fraction(1), Fraction(4))
"""Of methods with a guarantee, unless others are asked for: sizes alike within 5 or 10 %, and two budgets."""
TRIALS = 10
MOST_TRIALS = 1_000
_LEGACY = ("noise-infusion", "noise-infusion-sums", "top-contributors", "perturbed-values")
"""What offices have published with, the first that is among the candidates."""


def compare(
    release: Release,
    report: Path | None = None,
    progress: Progress = lambda _: None,
    *,
    methods: Sequence[str | Mapping[str, Any] | Wanted] = (),
    alphas: Sequence[Fraction] = (),
    epsilons: Sequence[Fraction] = (),
    legacy: str | None = None,
    accuracy: float = ACCURACY,
    by: Sequence[str] = (),
    trials: int = TRIALS,
    seed: int = 1,
) -> Comparison:
    """Write the confidential comparison of several ways to protect a release; nothing is charged, kept or published.

    `methods` are written as `protect` in a release file, `"suppression, p = 15"` or a mapping; without any, one of each
    way is compared. Those with a guarantee are tried at every combination of `alphas` and of `epsilons`, which are what
    all tables cost together. Cells can be used that are published and off by no more than the share `accuracy`. Figures
    are broken down `by` attributes, and errors are ratios to those of the candidate, or method, that is the `legacy`.

    >>> compare(release, methods=["suppression, minimum_units = 5", "rounding"]).report  # doctest: +SKIP
    """
    _refuse_strange(alphas=alphas, epsilons=epsilons, accuracy=accuracy, trials=trials)
    place = report or release.confidential / "compare.html"
    path = refuse_other(place, "--report", "report", BEGINS, planned=release.bundle)
    wanted = [Wanted.read(one) for one in methods] or by_default(release)
    each = [one for some in wanted for one in some.each(alphas or ALPHAS, epsilons or EPSILONS)]
    refuse_too_many(1 + len(each))
    _refuse_unknown_tables(release, each)
    with checked(release, progress, everything=True, remember=False) as ready:
        codelists = ready.opened.codelists()
        refuse_unknown_strata(release, codelists, by)
        tried = Trials(
            ready=ready,
            codelists=codelists,
            strata=tuple(dict.fromkeys(by)),
            accuracy=accuracy,
            trials=trials,
            seed=seed,
            report=path,
        )
        candidates, not_made = _candidates(tried, each)
        first = _legacy(candidates, legacy)
        progress("tabulate")
        tried.prepare()
        outcomes: dict[str, Outcome] = {}
        for at, candidate in enumerate(sorted(candidates, key=lambda one: one is not first)):
            try:
                told = _part(progress, at, len(candidates))
                outcomes[candidate.label] = tried.outcome(candidate, told, is_legacy=candidate is first)
            except (ReleaseError, MethodError) as error:
                not_made[candidate.label] = why_not(error)
    if not outcomes:
        raise _nothing(not_made)
    made = Comparison(
        outcomes=tuple(outcomes[one.label] for one in candidates if one.label in outcomes),
        not_made=not_made,
        legacy=first.label if first.label in outcomes else "",
        accuracy=accuracy,
        trials=trials,
        seed=seed,
        strata=tuple(tried.strata),
        report=path,
    )
    body = comparison_body(made)
    write_page(path, release.about, note=NOTE, heading="what each protection costs", body=body)
    return made


def _part(progress: Progress, at: int, number: int) -> Progress:
    """What tells of the share of all candidates that is done, while one of them is worked out."""
    return lambda step: progress(Step(step, (at + getattr(step, "share", 0.0)) / number))


def _candidates(tried: Trials, each: Sequence[Wanted]) -> tuple[list[Candidate], dict[str, str]]:
    """The release as it is written and under every method, and what nobody asked for and cannot be made."""
    written, not_made = tried.as_written(), dict[str, str]()
    found = [written] if written.release.tables else []
    failed: dict[str, dict[str, str]] = {}
    if not found:
        not_made[written.label] = _reasons(written)
    for wanted in each:
        candidate = tried.under(wanted)
        if not candidate.release.tables and not wanted.by_default:
            raise candidate.error or ReleaseError(
                f"--method {wanted.label}",
                expected="a table that the method can protect",
                found=_reasons(candidate),
                do="name another method; docs/choose.md says which is for which tables",
            )
        if not candidate.release.tables:
            failed.setdefault(wanted.method, {})[candidate.label] = _reasons(candidate)
            continue
        same_figures = [one for one in found if candidate.protections == one.protections]
        if wanted.by_default and same_figures:
            continue
        if any(candidate.label == one.label for one in same_figures):  # another alpha, which plays no part there
            continue
        same = sum(candidate.label == one.label.partition(" (")[0] for one in found)
        found.append(replace(candidate, label=f"{candidate.label} ({same + 1})") if same else candidate)
    for method, reasons in failed.items():  # one reason for a method whatever its alpha and epsilon is said once
        alike = len(set(reasons.values())) == 1 and all(one.method != method for one in found)
        not_made |= {method: next(iter(reasons.values()))} if alike else reasons
    if not found:
        raise _nothing(not_made)
    return found, not_made


def _reasons(candidate: Candidate) -> str:
    return "; ".join(f"{name}: {reason}" for name, reason in candidate.left_out.items())


def _nothing(not_made: Mapping[str, str]) -> ReleaseError:
    first = next(iter(not_made.items()), ("", "no table"))
    return ReleaseError(
        "compare",
        expected="counts or totals of jobs or of records, which several methods can protect",
        found=f"no such table ({': '.join(filter(None, first))})",
        do="use sfumato preview, which assesses every kind of statistic under other parameters",
    )


def _legacy(candidates: Sequence[Candidate], named: str | None) -> Candidate:
    """The candidate that others are compared with: by its name or its method."""
    asked = _LEGACY if named is None else (named,)
    found = [one for name in asked for one in candidates if name in (one.label, one.method)]
    if not found and named is not None:
        known = list(dict.fromkeys(name for one in candidates for name in (one.label, one.method)))
        close = get_close_matches(named, known, n=1)
        raise ReleaseError(
            "--legacy",
            expected=f"a candidate or its method: {', '.join(known)}",
            found=f"'{named}'",
            do=f"did you mean '{close[0]}'?" if close else "name one of these",
        )
    return found[0] if found else candidates[0]


def _refuse_unknown_tables(release: Release, each: Sequence[Wanted]) -> None:
    known = [one.name for one in release.tables]
    for wanted in each:
        for name in wanted.tables:
            if name not in known:
                close = get_close_matches(name, known, n=1)
                raise ReleaseError(
                    f"candidate '{wanted.label}', tables",
                    expected=f"tables of the release: {', '.join(known) or 'it has none'}",
                    found=f"'{name}'",
                    do=f"did you mean '{close[0]}'?" if close else "name one of these",
                )


def _refuse_strange(*, alphas: Sequence[Fraction], epsilons: Sequence[Fraction], accuracy: float, trials: int) -> None:
    refuse_strange("--alpha", alphas)
    refuse_strange("--epsilon", epsilons)
    refuse_strange("--within", [100 * accuracy], what="a percentage", example="10")
    if not 1 <= trials <= MOST_TRIALS:
        raise ReleaseError(
            "--trials", expected=f"1 to {MOST_TRIALS:,} trials", found=f"{trials:,}", do="write --trials 10, say"
        )
