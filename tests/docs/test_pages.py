"""The documentation does what it says: every block runs, every link leads somewhere."""

import pkgutil
import re
import shutil
from pathlib import Path

import pytest

from sfumato.checking import check
from sfumato.release import load
from sfumato.running import run
from sfumato_lab.economy.jobs.generate import generate
from tests.docs.blocks import CONTRIBUTING, PAGES, ROOT, blocks, is_shown, run_block
from tests.test_architecture import ORDER

RUNNABLE = ("python", "console", "sh", "diff")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An economy with its bundle, for pages that take both for granted."""
    made = generate(tmp_path_factory.mktemp("published") / "economy", jobs=10_000)
    run(load(made.release))
    return made.folder


def is_run_here(page: Path) -> bool:
    """Whether a page is run beside an economy: contributing and tasks have tests of their own."""
    elsewhere = page == CONTRIBUTING or page.parent.name == "tasks"
    return not elsewhere and any(block.kind in RUNNABLE for block in blocks(page))


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if is_run_here(page)], ids=name)
def test_every_block_of_a_page_runs_in_order(
    page: Path, published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", "examples")
    text = page.read_text(encoding="utf-8")
    if "sfumato economy economy" not in text and 'generate(Path("economy")' not in text:
        shutil.copytree(published, "economy")
    namespace: dict[str, object] = {}
    for block in blocks(page):
        run_block(block, namespace)


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs/release-file.md"], ids=name)
def test_the_toml_blocks_of_a_page_make_a_release_that_passes_its_check(page: Path, release_folder: Path) -> None:
    release = release_folder / "from_page.toml"
    release.write_text("\n".join(block.text for block in blocks(page) if block.kind == "toml"), encoding="utf-8")
    findings = check(load(release))
    budget = findings.plan.release.about.budget
    assert findings.plan.guarantee.epsilon <= budget.epsilon
    assert findings.plan.guarantee.definition == budget.definition


def test_every_relative_link_resolves() -> None:
    broken = [f"{name(page)}: {link}" for page in PAGES for link in links(page) if not resolves(page, link)]
    assert not broken


def links(page: Path) -> list[str]:
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def resolves(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not anchor or not target.is_file():
        return target.exists()
    headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_no_page_names_a_folder_of_someones_machine() -> None:
    for page in [*PAGES, *(ROOT / "examples").glob("*.toml")]:
        found = re.search(r"(?<![\w.…])/(home|root|work|Users)/", page.read_text(encoding="utf-8"))
        assert found is None, f"{name(page)}: {found}"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Published 3 tables in …/economy/bundle.", True),
        ("Published 5 tables", True),
        ("Printed 3 tables", False),
        ("1–9   298  0.4  ██", True),
        ("…", True),
    ],
)
def test_a_line_is_recognised_whatever_its_numbers_but_not_with_other_words(line: str, shown: bool) -> None:
    output = "Published 3 tables in /some/where/economy/bundle.\n  1–9    1,298    0.5  ████▌\n"
    assert is_shown(line, output) is shown


def test_the_tutorial_quotes_the_release_file_and_the_statement_as_they_are(published: Path) -> None:
    tutorial = ROOT / "docs/tutorial.md"
    excerpt = next(block.text for block in blocks(tutorial) if block.text.startswith("[release]"))
    release = (published / "release.toml").read_text(encoding="utf-8")
    assert [line for line in excerpt.splitlines() if line not in release] == []
    quoted = re.findall(r"^> (.+)$", tutorial.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert quoted
    assert " ".join(quoted) in (published / "bundle/statement.md").read_text(encoding="utf-8")


UNTRUE = (
    "shift is small beside",
    "can be told apart only with these odds",
    "odds of any guess about one job",
    "holds a job, and at which workplace",
    "Only `smooth-laplace` has one",
    "only smooth-laplace needs one",
    "No quantiles yet",
    "Epsilon is divided among the worker cells",
    "Ten commands",
    "SQLite or PostgreSQL",
)
"""What pages, statements and comments said, and was found to be false."""


@pytest.mark.parametrize("sentence", UNTRUE)
def test_sentences_that_were_found_false_are_gone(sentence: str) -> None:
    files = [*PAGES, ROOT / "pyproject.toml", *(ROOT / "src").rglob("*.py")]
    assert not [name(file) for file in files if sentence in " ".join(file.read_text(encoding="utf-8").split())]


def mentioned(pattern: str) -> set[tuple[str, str]]:
    """What pages mention, beside the page."""
    return {(word, name(page)) for page in PAGES for word in re.findall(pattern, page.read_text(encoding="utf-8"))}


def test_every_name_of_the_package_that_a_page_mentions_exists() -> None:
    named = mentioned(r"`(sfumato(?:_lab)?(?:\.\w+)+)`")
    groups = {"sfumato.commands", "sfumato.methods"}  # of entry points
    files = {word for word, _ in named if word.endswith((".key", ".toml", ".sqlite"))}
    exist = {word for word in {word for word, _ in named} - groups - files if _exists(word)}
    assert not [found for found in sorted(named) if found[0] not in groups | files | exist]


def test_every_file_that_a_page_mentions_exists() -> None:
    named = mentioned(r"`((?:src|tests|docs|examples)/[^`\s<]*)`")
    assert not [found for found in sorted(named) if not any(ROOT.glob(found[0].partition("::")[0]))]


def _exists(word: str) -> bool:
    try:
        pkgutil.resolve_name(word)
    except (ImportError, AttributeError):
        return False
    return True


def test_the_architecture_lists_the_rooms_in_their_order() -> None:
    listed = next(block for block in blocks(ROOT / "docs/architecture.md") if block.note == "order of rooms")
    assert [line.split()[0] for line in listed.text.splitlines()] == list(ORDER)
