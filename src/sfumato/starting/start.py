"""Start: look at files, ask what must be known, and write a first release file; nothing is charged or overwritten."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.durable import remove_abandoned, write_new
from sfumato.errors import DataError, SfumatoError, UsageError
from sfumato.frame.periods import Span
from sfumato.keys import new_key
from sfumato.release import load
from sfumato.starting.lists import coded_by_sdmx, is_sdmx
from sfumato.starting.look import Looked, look
from sfumato.starting.names import near_ones
from sfumato.starting.proposal import KINDS, Proposal, Wishes, candidates, need_codes
from sfumato.starting.propose import may_weigh, must_choose, propose
from sfumato.starting.write import release_text

KEY = "sfumato.key"
_TRIES = 3
"""So often a question is asked."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """Something that whoever starts may know better, or has to know."""

    wish: str
    """The wish that the answer is."""
    text: str
    default: str = ""
    must: bool = False
    why: str = "it is public, and must not be read off the records"
    """Why it must be told."""
    about: str = ""
    """The attribute that it is about."""
    refused: str = ""
    """Why the answer before was none."""

    @property
    def option(self) -> str:
        """How the command line takes the answer."""
        return f"--{self.wish.replace('_', '-')}"


Ask = Callable[[Question], str]
"""Asks somebody; an empty answer leaves a question open."""


@dataclass(frozen=True, kw_only=True)
class Started:
    """What was written, and what it is based on: confidential."""

    release: Path
    key: Path | None
    made_key: bool
    proposal: Proposal

    def facts(self) -> dict[str, Any]:
        """The same for machines, without any value of a record."""
        proposal = self.proposal
        return {
            "confidential": True,
            "charged": False,
            "release": str(self.release),
            "kind": proposal.kind,
            "key": None if self.key is None else str(self.key),
            "key_made": self.made_key,
            "tables": {role: _table_facts(table) for role, table in proposal.tables.items()},
            "keys": dict(proposal.keys),
            "links": list(proposal.links),
            "counts_workers": list(proposal.employees),
            "left_out": list(proposal.left_out),
            "jobs": proposal.jobs,
            "codelists": dict(proposal.lists),
            "doubts": list(proposal.doubts),
            "attributes": [
                {"name": one.name, "public": one.public, "usable": one.usable, "codes": one.size}
                for one in proposal.attributes
            ],
            "measures": [
                {"name": one.name, "usable": not one.why_not, "why_not": one.why_not} for one in proposal.measures
            ],
            "candidates_for_public": candidates(proposal),
            "need_codes": [one.name for one in need_codes(proposal)],
            "first_table_by": list(proposal.by),
        }


def _table_facts(table: Looked) -> dict[str, Any]:
    columns = {name: column.described() for name, column in table.columns.items()}
    return {"path": str(table.path), "rows": table.rows, "reading": table.reading, "columns": columns}


def start(
    files: Sequence[str | Path],
    output: str | Path = "release.toml",
    *,
    ask: Ask | None = None,
    show: Callable[[Sequence[Looked]], None] = lambda _: None,
    progress: Callable[[str], None] = lambda _: None,
    **wishes: Any,
) -> Started:
    """Look at files, and write a release file for them that runs; `ask` is called for what may be known better.

    Nothing is charged, and no file is overwritten. What must be known and is not told is an error that says how to
    tell it.
    """
    out = Path(output)
    told = Wishes(**wishes)
    remove_abandoned(out)
    _refuse_there(out)
    paths = [Path(file) for file in files]
    lists = [path for path in paths if is_sdmx(path) and path.is_file()]
    with look([path for path in paths if path not in lists], progress, told.skip, told.dates, told.decimal) as looked:
        show(looked)
        coded = coded_by_sdmx(looked, lists)
        named = {column: str(path) for column, path in coded.items()}
        told = replace(told, codelists={**named, **told.codelists})
        wished = _asked(looked, told, ask)
        proposal = propose(looked, wished)
        proposal = replace(proposal, lists={**proposal.lists, **{name: path.name for name, path in coded.items()}})
        _need(proposal)
        key = (wished.key or out.parent / KEY) if proposal.keyed else None
        text = release_text(proposal, out, key)
        made = key is not None and not key.exists()

        def passes(draft: Path) -> None:
            try:
                load(draft)
            except SfumatoError as error:  # nobody has heard of the draft
                where = error.where.replace(str(draft), str(out))
                raise type(error)(where, expected=error.expected, found=error.found, do=error.do) from error
            if key is not None and made:
                new_key(key)  # before the release file: one without its key would not run

        try:
            write_new(out, text.encode(), check=passes)
        except FileExistsError:
            _refuse_there(out)
            raise
    return Started(release=out, key=key, made_key=made, proposal=proposal)


def _refuse_there(out: Path) -> None:
    if out.exists():
        raise UsageError(
            str(out),
            expected="a file that does not exist yet",
            found="one that does",
            do="choose another name: -o FILE",
        )


def _asked(looked: Sequence[Looked], wished: Wishes, ask: Ask | None) -> Wishes:
    """The wishes with all answers, each of which may lead to the next question."""

    def put(question: Question) -> Wishes:
        for _ in range(_TRIES if ask is not None else 1):
            answer = ask(question).strip() if ask is not None else ""
            try:
                told = _answered(wished, question, answer)
                _ = propose(looked, told).by
            except SfumatoError as error:
                if ask is None:
                    raise
                question = replace(question, refused=str(error))
            else:
                return told
        raise UsageError(question.wish, expected=question.text, found="other answers", do=f"give {question.option}")

    found = propose(looked, wished)
    if wished.kind is None:
        text = "\n  ".join(["What are these data?", *KINDS.values()]) + "\n"
        wished = put(Question(wish="kind", text=text, default=found.kind))
        found = propose(looked, wished)
    if must_choose(found):
        columns = ", ".join(found.employees)
        text = f"the columns to add up to the number of workers, without any that are part of another, of {columns}"
        wished = put(Question(wish="employees", text=text, must=True, why="several columns count workers"))
        found = propose(looked, wished)
    if wished.public is None and candidates(found):
        text = (
            "Which attributes of establishments does everyone know? They are not protected, and the others are. "
            f"Candidates by their names: {', '.join(candidates(found))}"
        )
        wished = put(Question(wish="public", text=text))
        found = propose(looked, wished)
    for one in need_codes(found):
        text = f"Is there a public list with the codes of {one.name}? The path of the file, or nothing"
        wished = put(Question(wish="codelist", text=text, about=one.name))
    if found.kind == "people" and "period" in found.keys and not wished.periods:
        text = f"the periods of '{found.keys['period']}' that are published, such as 2023,2024"
        wished = put(Question(wish="periods", text=text, must=True))
    if found.kind == "people" and "weight" in found.keys and wished.largest_weight is None:
        text = "the largest weight that the design of the survey allows"
        wished = put(Question(wish="largest_weight", text=text, must=True))
    by = propose(looked, wished).by
    if wished.by is None and by:
        wished = put(Question(wish="by", text="What is the first table by?", default=",".join(by)))
    return wished


def _answered(wished: Wishes, question: Question, answer: str) -> Wishes:
    if not answer and question.must:
        raise UsageError(
            question.wish.replace("_", " "),
            expected=question.text,
            found=f"nothing that tells it: {question.why}",
            do=f"give {question.option}",
        )
    if not answer:
        return replace(wished, public=()) if question.wish == "public" else wished
    if question.wish == "codelist":
        return replace(wished, codelists={**wished.codelists, question.about: answer})
    several = question.wish in ("public", "periods", "by", "employees")
    told: Any = tuple(part.strip() for part in answer.split(",") if part.strip()) if several else answer
    if question.wish == "largest_weight":
        if not answer.isdigit():
            raise UsageError("largest weight", expected="a whole number", found=answer, do="give one")
        told = int(answer)
    return replace(wished, **{question.wish: told})


def _need_marks(proposal: Proposal) -> None:
    """Refuse numbers such as 1.250 where none tells whether that is a thousand and more, or one and some decimals."""
    used = {one.column for one in proposal.measures} | {*proposal.employees}
    used |= {proposal.keys[name] for name in ("weight", "earnings") if name in proposal.keys}
    for table in proposal.tables.values():
        numbers = [column for name, column in table.columns.items() if name in used]
        doubtful = [column for column in numbers if column.doubtful]
        if doubtful and not any(column.tells_marks for column in numbers) and proposal.wishes.decimal is None:
            mark = doubtful[0].doubtful
            raise DataError(
                f"{table.path.name}: {doubtful[0].name}",
                expected="numbers that tell whether a mark groups thousands or comes before decimals",
                found=f"one {mark} before the last three digits of every number that has a mark",
                do="say what comes before decimals: --decimal . or --decimal ,",
            )


def _need(proposal: Proposal) -> None:
    """Refuse what a release file would be refused for, in the words of whoever starts."""
    _need_marks(proposal)
    if proposal.kind == "panel":
        all_between = Span(first=proposal.periods[0], last=proposal.periods[-1]).codes()
        if lacking := [period for period in all_between if period not in proposal.periods]:
            raise DataError(
                f"{proposal.tables['jobs'].path.name}: {proposal.keys['period']}",
                expected=f"jobs of every period from {all_between[0]} to {all_between[-1]}: a panel has no gaps",
                found=f"none of {', '.join(lacking)}",
                do="add them; or give a file with periods that follow each other, or one period with --kind jobs",
            )
    usable, measure = [one.name for one in proposal.measures if not one.why_not], proposal.wishes.measure
    if measure is not None and measure not in usable:
        raise UsageError(
            f"--measure '{measure}'",
            expected=f"a measure of businesses that can be added up: {', '.join(usable) or 'there are none'}",
            found="no such measure",
            do=near_ones(measure, usable) if usable else "leave it out",
        )
    weight = proposal.keys.get("weight")
    if proposal.wishes.largest_weight is not None and (weight is None or proposal.kind != "people"):
        raise _unweighted(proposal)
    if weight and proposal.wishes.largest_weight:
        greatest = proposal.tables["records"].columns[weight].greatest or 0
        if greatest > proposal.wishes.largest_weight:
            raise DataError(
                "largest weight",
                expected="no record with a larger weight",
                found="at least one",
                do="give the largest that the design allows, or mend the weights",
            )


def _unweighted(proposal: Proposal) -> UsageError:
    """Why a largest weight would change nothing: who gives one would publish unweighted counts unaware."""
    given = f"--largest-weight {proposal.wishes.largest_weight}"
    if proposal.kind != "people":
        return UsageError(
            given,
            expected="people, whose tables have a largest weight",
            found=f"{proposal.kind}",
            do="leave it out, or say that these are people: --kind people",
        )
    likely = may_weigh(proposal)
    return UsageError(
        given,
        expected="the column with the weights",
        found="none whose name tells"
        + (f"; above 0 in every row, with decimals: {', '.join(likely)}" if likely else ""),
        do=f"name it: --weight {likely[0] if len(likely) == 1 else 'COLUMN'}; without weights, leave the option out",
    )
