"""Write a first release file that runs, with comments from which someone new learns what a release file is."""

import json
import os
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from sfumato.frame.periods import in_time
from sfumato.starting.describe import RARE, larger_units, replicates_of
from sfumato.starting.names import WOMEN, speaks_of
from sfumato.starting.proposal import Attribute, Measure, Proposal, candidates, drafts, need_codes
from sfumato.starting.propose import is_of_a_sex

_WIDTH = 110
EVERYTHING = "everything"
"""An attribute with one code for all rows: what a first table is by when no other has codes that may be used."""
_TITLES = {
    "jobs": "Jobs",
    "register": "Jobs",
    "panel": "Workforce",
    "businesses": "Businesses",
    "people": "People",
}
_POPULATIONS = {"businesses": "businesses", "people": "people"}
_MOST_WORKER_CELLS = 8
"""At alpha 0.1 smooth-pareto needs an epsilon above 0.0953 for each, and a first table has 1."""


def release_text(proposal: Proposal, out: Path, key: Path | None) -> str:
    """The release file of a proposal, for the place where it will be."""
    lines = [
        *_head(proposal, out),
        *_release(proposal, out, key),
        *_data(proposal, out),
        *_attributes(proposal, out),
        *_measures(proposal),
        *_tables(proposal),
        *_further(proposal),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _said(text: str) -> list[str]:
    """Words as comments."""
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)]


def toml(value: Any) -> str:
    """A value as TOML writes it.

    >>> toml({"path": "a.csv", "delimiter": ";"}), toml(["x", 1]), toml({"NET PROFIT": True})
    ('{ path = "a.csv", delimiter = ";" }', '["x", 1]', '{ "NET PROFIT" = true }')
    """
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {toml(inside)}" for name, inside in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml(name)


def _head(proposal: Proposal, out: Path) -> Iterator[str]:
    files = ", ".join(table.path.name for table in proposal.tables.values())
    undecided = [one.name for one in proposal.attributes if one.usable and one.undecided]
    runs = f"once you decide about rows without {' or '.join(undecided)}" if undecided else "as it is"
    yield from _said(
        f"A first release file, written by `sfumato start` after a look at {files}. It runs {runs}. Read it from "
        "top to bottom, and change what you know better; lines with `decide` are for you to decide. Then:"
    )
    yield "#"
    yield f"#   sfumato check {out.name}    what it would publish, guarantee and cost; nothing is charged"
    yield f"#   sfumato run {out.name}      charge the budget, and publish into the folder `bundle`"
    yield f"#   sfumato assess {out.name}   what the protection costs and withstands; confidential"
    if any(one.draft for one in need_codes(proposal)) or any(one.undecided for one in proposal.attributes):
        yield "#"
        yield from _said(
            "CONFIDENTIAL while it has drafts of codes: these were read off the records. Remove them before you "
            "show this file to anyone who may not see the data."
        )
    yield ""


def _release(proposal: Proposal, out: Path, key: Path | None) -> Iterator[str]:
    wishes = proposal.wishes
    title = wishes.title or f"{_TITLES[proposal.kind]}, {_reference(proposal)}"
    yield "[release]"
    yield f"title = {toml(title)}"
    if proposal.kind in _POPULATIONS:
        yield f"population = {toml(_POPULATIONS[proposal.kind])}"
    yield f"period = {toml(_reference(proposal))}" + ("" if wishes.reference else "  # decide: of when the data are")
    if proposal.keyed and key is not None:
        yield from _said(
            "The methods below compute every perturbation from this secret: with the same key the same unit is "
            "always moved the same way. An office has one key, keeps it for ever, and shows it to nobody. These "
            "methods have no formal guarantee, and so no budget."
        )
        yield f"key = {toml(_relative(key, out))}"
    elif proposal.kind == "people":
        yield from _said(
            "decide: what all releases about these people and this period may cost together. A table with epsilon = 1 "
            "moves anyone's odds that a person is in the data, or not, by a factor of at most 2.7; each table below "
            "spends 1 of it."
        )
        yield 'budget = { epsilon = 2, definition = "individuals" }'
    else:
        yield from _said(
            "decide: what all releases about these jobs and this period may cost together. A table with epsilon = 1 "
            "moves anyone's odds between a size of an establishment and one up to 10 % larger (alpha = 0.1), or that a "
            "job is there or not, by a factor of at most 2.7; each table below spends 1 of it."
        )
        yield "budget = { alpha = 0.1, epsilon = 2 }"
    yield 'ledger = "ledger.sqlite"       # keeps the budget: one for all releases of an office, and never deleted'
    yield 'bundle = "bundle"              # the folder that is published'
    yield ""


def _reference(proposal: Proposal) -> str:
    if proposal.wishes.reference:
        return proposal.wishes.reference
    if len(proposal.periods) > 1 and re.match(r"(19|20)\d\d", proposal.periods[0]):
        return f"{proposal.periods[0]}/{proposal.periods[-1]}"
    named = re.search(r"(19|20)\d\d", " ".join(table.path.name for table in proposal.tables.values()))
    return named[0] if named else str(date.today().year)


def _relative(path: Path | str, out: Path) -> str:
    """A path as a release file writes it."""
    return Path(os.path.relpath(Path(path).absolute(), out.absolute().parent)).as_posix()


# The data.


def _data(proposal: Proposal, out: Path) -> Iterator[str]:
    keys = proposal.keys
    yield "[data]"
    for role, table in proposal.tables.items():
        told: dict[str, Any] = {"path": _relative(str(table.source.path), out), **table.options}
        if role == "jobs":
            told |= {name: keys[name] for name in ("workplace", "worker", "period", "earnings") if name in keys}
            if proposal.kind == "panel":
                told |= {"first": proposal.periods[0], "last": proposal.periods[-1]}
            if proposal.employees:
                several = len(proposal.employees) > 1
                told["employees"] = _counted(proposal) if several else proposal.employees[0]
        elif role == "records":
            told |= {name: keys[name] for name in ("unit", "period", "weight") if name in keys}
            larger = larger_units(proposal)
            if larger and proposal.kind == "businesses":
                told["levels"] = list(larger)
        else:
            told |= {"key": keys[f"{role} key"]}
        yield f"# {_what(proposal, role)}"
        yield f"{role} = {toml(told)}"
        if "levels" in told:
            yield "# `levels` name larger units that are protected as well."
        if role == "records" and (pattern := replicates_of(proposal)[0]):
            added = toml({"columns": pattern, "rule": "jackknife"})
            yield f"# decide: replicate weights give sampling errors: add replicates = {added}"
    public = [one.name for one in proposal.attributes if one.public and one.usable]
    if proposal.kind != "people":
        yield from _said(
            "decide: attributes of establishments that everyone can look up. What is listed here is not protected, "
            "and codes without a list are read off the register."
            + (f" Candidates by their names: {', '.join(candidates(proposal))}." if candidates(proposal) else "")
        )
    if _stands_alone(proposal) and proposal.kind != "people":
        public = [*public, EVERYTHING]
    public += [keys["period"]] if proposal.kind == "businesses" and "period" in keys else []
    if public:
        yield f"public = {toml(public)}"
    yield ""


def _what(proposal: Proposal, role: str) -> str:
    if proposal.employees:
        return "One row for each establishment, which stands for as many jobs as `employees` says."
    if "period" in proposal.keys and role in ("jobs", "records"):
        return "One row a unit and period." if role == "records" else "One row a job and period: a panel."
    return {
        "jobs": "One row a job.",
        "workplaces": "One row for every establishment, also those without jobs.",
        "workers": "One row a worker.",
        "records": "One row a unit.",
    }[role]


def _stands_alone(proposal: Proposal) -> bool:
    """Whether the first table has nothing to be by but everything together."""
    return not proposal.by and not (proposal.kind == "people" and proposal.periods)


# Attributes and measures.


def _attributes(proposal: Proposal, out: Path) -> Iterator[str]:
    yield "[data.attributes]"
    yield from _said(
        "Columns that classify tables. Codes are public and never read off confidential records: one person with a "
        'rare code would add a row. A file of codes may be CSV, Excel or SDMX: codelist = "nace.csv".'
    )
    usable = [one for one in proposal.attributes if one.usable]
    for one in usable:
        if not _is_long(one):
            yield from _usable(one, out)
    if len(proposal.employees) > 1:
        codes = toml(list(_counted(proposal)) if "F" not in _counted(proposal) else {"F": "Women", "M": "Men"})
        yield f"{_heads(proposal)} = {{ codes = {codes} }}  # decide: what the columns of `employees` tell apart"
    if _stands_alone(proposal):
        key = proposal.keys.get("workplaces key") or proposal.keys.get("workplace") or proposal.keys["unit"]
        yield from _said("No attribute has codes yet that may be used, so the first table has one cell for everything.")
        yield f'{EVERYTHING} = {{ column = {toml(key)}, recode = {{ all = ["*"] }} }}'
    if "period" in proposal.keys and proposal.kind in ("people", "businesses"):
        why = "as they were told" if proposal.kind == "people" else "that the records have"
        yield f"{_key(proposal.keys['period'])} = {{ codes = {toml(list(proposal.periods))} }}  # the periods {why}"
    yield from _drafts(proposal)
    yield ""
    for one in filter(_is_long, usable):
        yield from _long(one)


def _is_long(one: Attribute) -> bool:
    return one.codes is not None and len(one.codes) > 10


def _long(one: Attribute) -> Iterator[str]:
    """An attribute with many codes: a section of its own, a code in a line."""
    codes = dict(one.codes or {}) | ({"unknown": "Unknown"} if one.empty else {})
    yield from _said(f"{one.name}: {one.why}. A codelist does the same in one line.")
    plain = all(code == label for code, label in (one.codes or {}).items())
    if plain or one.empty or one.column != one.name:
        yield f"[data.attributes.{_key(one.name)}]"
    if one.column != one.name:
        yield f"column = {toml(one.column)}"
    if one.empty:
        yield 'empty = "unknown"'
    if plain:
        yield from textwrap.wrap(f"codes = {toml(list(codes))}", _WIDTH, subsequent_indent="  ")
    else:
        yield f"[data.attributes.{_key(one.name)}.codes]"
        yield from (f"{_key(code)} = {toml(label)}" for code, label in codes.items())
    if one.undecided:
        yield from _undecided(one, f'empty = "unknown" under [data.attributes.{_key(one.name)}], and the code unknown')
    yield ""


def _usable(one: Attribute, out: Path) -> Iterator[str]:
    told: dict[str, Any] = {}
    if one.codelist:
        file = _relative(one.codelist, out)
        told["codelist"] = file if one.level is None else {"file": file, "level": one.level}
    elif one.classes:
        told["classes"] = one.classes
    elif one.codes:
        told["codes"] = dict(one.codes)
        yield from _said(f"{one.name}: {one.why}.")
    told = _renamed(one, told)
    if one.empty:
        told = _with_empty(told)
    if told:
        yield f"{_key(one.name)} = {toml(told)}"
    if one.undecided:
        yield from _undecided(one, f"{_key(one.name)} = {toml(_with_empty(told))}")
    elif one.read_off:
        where = "register" if one.holder == "jobs" else one.holder
        yield f"# {one.name}: public; its codes are read off the {where}, and a codelist adds labels."


def _drafts(proposal: Proposal) -> Iterator[str]:
    """What cannot be used yet, as comments."""
    others = need_codes(proposal)
    of_units = [one.name for one in drafts(proposal) if one not in others]
    if of_units:
        yield "#"
        yield from _said(f"Of establishments, and usable once they are listed in `public`: {', '.join(of_units)}.")
    if others:
        yield "#"
        yield from _said(
            "Nobody has said what the codes of these are. Codes that were seen in confidential records may be used "
            "only if they are a public list: compare, complete and confirm it, or name its file, and take the # "
            f"away. Drafts leave out codes of fewer than {RARE} rows."
        )
    for one in others:
        name, then = _key(one.name), "; then list it in `public`" if one.public else ""
        yield f"# {name} = {toml(_renamed(one, {'codelist': f'{one.name}.csv'}))}"
        if one.labelled:
            yield f"# Value labels of the file, which are metadata and no records: confirm that they are public{then}."
            yield f"# {name} = {toml(_drafted(one, {'codes': dict(one.labelled)}))}"
        elif one.draft:
            yield f"# {name} = {toml(_drafted(one, {'codes': list(one.draft)}))}  # DRAFT{then}"


def _undecided(one: Attribute, instead: str) -> list[str]:
    words = f"decide: some rows have no {one.name}, and a check refuses them. Fill them in, or make a code of them:"
    return [*_said(words), f"# {instead}  # DRAFT"]


def _drafted(one: Attribute, told: dict[str, Any]) -> dict[str, Any]:
    return _renamed(one, _with_empty(told) if one.empty or one.undecided else told)


def _with_empty(told: Mapping[str, Any]) -> dict[str, Any]:
    """With a code for rows that have none."""
    codes = told.get("codes", {})
    added = codes | {"unknown": "Unknown"} if isinstance(codes, dict) else [*codes, "unknown"]
    return {**told, **({"codes": added} if codes else {}), "empty": "unknown"}


def _renamed(one: Attribute, told: dict[str, Any]) -> dict[str, Any]:
    return told if one.column == one.name else {"column": one.column, **told}


def _measures(proposal: Proposal) -> Iterator[str]:
    if not proposal.measures:
        return
    yield "[data.measures]"
    yield from _said(
        "Numbers that are added up. decide: what one is (dollars, tonnes), and `minimum` and `maximum`, beyond "
        "which values are refused; a minimum is 0 when not given. With `factor = 100` euros with decimals are "
        "counted in cents."
    )
    for one in proposal.measures:
        told: dict[str, Any] = {} if one.column == one.name else {"column": one.column}
        if one.negative:
            told["minimum"] = -(10**15)
        unit = {1: "units", 100: "hundredths", 1000: "thousandths"}[one.factor]
        told |= {"unit": unit} | ({} if one.factor == 1 else {"factor": one.factor})
        line = f"{_key(one.name)} = {toml(told)}"
        yield from [*_said(f"{one.name} {one.why_not}."), f"# {line}"] if one.why_not else [line]
    yield ""


# Tables.


def _tables(proposal: Proposal) -> Iterator[str]:
    by = list(proposal.by) or ([] if not _stands_alone(proposal) else [EVERYTHING])
    names = " and ".join(by)
    if proposal.kind == "businesses":
        yield from _businesses(proposal, by)
    elif proposal.kind == "panel":
        yield from _said(
            "Workforce indicators of every period: jobs at its beginning and end, hires, separations, earnings. Every "
            "employer has a secret factor near 1 for ever, and sums add up; noise-infusion is the method for panels."
        )
        period = proposal.keys["period"]
        yield from _table("workforce", f"Workforce by {names}", 'indicators = "all"', [*by, period])
        yield 'protect = { method = "noise-infusion" }'
        yield ""
    elif proposal.kind == "people":
        yield from _people(proposal, by)
    else:
        yield from _jobs(proposal, by)


def _table(name: str, title: str, asks: str, by: Sequence[str]) -> Iterator[str]:
    yield "[[table]]"
    yield f"name = {toml(re.sub(r'[^a-z0-9]+', '_', name.lower())[:60].strip('_'))}"
    yield f"title = {toml(title)}"
    yield asks
    yield f"by = {toml(list(by))}"


def _jobs(proposal: Proposal, by: list[str]) -> Iterator[str]:
    yield from _said(
        "Counts of jobs. smooth-pareto has the least error of the methods that hide the size of an establishment from "
        "everyone: its error in a cell is a share of the largest establishment there, and not of the cell."
    )
    yield from _table(f"jobs_by_{'_'.join(by)}", f"Jobs by {' and '.join(by)}", 'count = "jobs"', by)
    yield 'protect = { method = "smooth-pareto", epsilon = 1 }'
    yield ""
    worker = next((one for one in _of_workers(proposal) if one.size <= _MOST_WORKER_CELLS), None)
    second = worker.name if worker else _heads(proposal) if 1 < len(proposal.employees) <= _MOST_WORKER_CELLS else None
    if second is not None:
        yield from _said(
            "With an attribute of workers all its codes are protected as one vector, at epsilon once; epsilon must "
            f"exceed 0.0953 for each code of {second}."
        )
        yield from _table(
            f"jobs_by_{by[0]}_{second}", f"Jobs by {by[0]} and {second}", 'count = "jobs"', [by[0], second]
        )
        yield 'protect = { method = "smooth-pareto", epsilon = 1 }'
        yield ""


def _heads(proposal: Proposal) -> str:
    """A name for the attribute of workers whose codes are the columns of a register."""
    taken = {one.name.casefold() for one in proposal.attributes} | {key.casefold() for key in proposal.keys.values()}
    return "sex" if all(map(is_of_a_sex, proposal.employees)) and "sex" not in taken else "workers_by"


def _counted(proposal: Proposal) -> dict[str, str]:
    """The columns that count workers, by their codes."""
    women = [name for name in proposal.employees if is_of_a_sex(name) and speaks_of(name, WOMEN)]
    men = [name for name in proposal.employees if is_of_a_sex(name) and name not in women]
    pair = len(women) == len(men) == 1 and len(proposal.employees) == 2
    return {"F": women[0], "M": men[0]} if pair else {name: name for name in proposal.employees}


def _of_workers(proposal: Proposal) -> list[Attribute]:
    return [one for one in proposal.attributes if one.usable and not one.public and one.name not in proposal.by]


def _people(proposal: Proposal, by: list[str]) -> Iterator[str]:
    weight, period = proposal.keys.get("weight"), proposal.keys.get("period")
    protect: dict[str, Any] = {"method": "laplace", "epsilon": 1}
    words = "Counts of people. laplace adds noise that hides any one person, the same to every cell."
    if weight:
        protect["largest_weight"] = proposal.wishes.largest_weight
        words += (
            " A weighted count hides the heaviest person: no weight may be above largest_weight, which the design "
            "of the survey tells and never the data; the error is about largest_weight/epsilon."
        )
    if period:
        words += " The whole history of a person is protected: epsilon is divided over the periods."
    yield from _said(words)
    by = [*by, *([period] if period else [])]
    yield from _table(f"people_by_{'_'.join(by)}", f"People by {' and '.join(by)}", 'count = "records"', by)
    yield f"protect = {toml(protect)}"
    yield ""


_TOP = 'protect = { method = "top-contributors", magnitudes = [0.4, 0.3, 0.2], suppress = 2 }'


def _businesses(proposal: Proposal, by: list[str]) -> Iterator[str]:
    usable = [one for one in proposal.measures if not one.why_not]
    measure = next((one for one in usable if one.name == proposal.wishes.measure), next(iter(usable), None))
    period = proposal.keys.get("period")
    by = [*by, *([period] if period else [])]
    yield from _said(
        "Totals of skewed measures. top-contributors moves the largest contributors of every cell, by directions "
        "and sizes that only the key tells, so that not even the second largest learns the largest from a total. "
        "Cells of few businesses are moved most, totals over many hardly, and the error is published beside each."
    )
    asks = 'count = "records"' if measure is None else f"total = {toml(measure.name)}"
    what = "Businesses" if measure is None else _words(measure)
    yield from _table(f"{what}_by_{'_'.join(by)}", f"{what} by {' and '.join(by)}", asks, by)
    if not period:
        yield 'totals = true                  # adds the code "total" to every attribute'
    yield _TOP
    yield ""
    if period and measure and not measure.negative and len(in_time(proposal.periods)) > 1:
        yield from _said(
            "Growth from period to period, in percent: far more exact than the totals, as the same businesses move "
            "both the same way."
        )
        growth = toml({"of": measure.name, "since": ["previous"]})
        yield from _table(f"growth_of_{what}", f"Growth of {what.lower()}", f"growth = {growth}", by)
        yield _TOP
        yield ""


def _words(measure: Measure) -> str:
    return measure.name.replace("_", " ").capitalize()


_FURTHER = {
    "jobs": (
        "laplace and node-laplace hide single jobs and no sizes of establishments; noise-infusion needs a key and "
        "no budget, and its sums add up; sparse-laplace is for home by work.",
        "docs/methods/smooth-pareto.md, docs/methods/vector.md, docs/tune.md",
    ),
    "register": (
        "the same methods as for jobs with one row each: a register gives the same tables. noise-infusion needs a "
        "key and no budget.",
        "docs/methods/smooth-pareto.md, docs/methods/vector.md, docs/tune.md",
    ),
    "panel": (
        "flows between industries and graphs of employers that share workers, by the same method; for a formal "
        "guarantee, count the jobs of one period with smooth-pareto.",
        "docs/methods/noise-infusion.md, docs/methods/smooth-pareto.md",
    ),
    "businesses": (
        "means (`mean`) and counts (`count`) by the same method; perturbed-values, where only units that asked are "
        "protected. `sfumato tune` chooses magnitudes.",
        "docs/methods/top-contributors.md, docs/methods/perturbed-values.md",
    ),
    "people": (
        "percentiles of a measure (quantiles, noisy-quantiles, with public bins); means and predictions of small "
        "groups (mose, noisy-regression); a [[cube]] by many attributes, of which any table can be asked later.",
        "docs/methods/earnings-percentiles.md, docs/methods/small-samples.md, docs/methods/hypercube.md",
    ),
}


def _further(proposal: Proposal) -> Iterator[str]:
    words, pages = _FURTHER[proposal.kind]
    yield from _said(f"What else fits these data: {words} See {pages}.")
