"""Every page is found: from the README by a few links, from the map within two clicks."""

import re
from pathlib import Path

from tests.docs.blocks import PAGES, ROOT, blocks
from tests.docs.test_pages import links, name

README, MAP = ROOT / "README.md", ROOT / "docs/README.md"
SCREEN = 50
"""Lines of a screen."""


def pages_linked_by(page: Path) -> set[Path]:
    found = {(page.parent / link.partition("#")[0]).resolve() for link in links(page)}
    return found & set(PAGES)


def pages_within(clicks: int, start: Path) -> set[Path]:
    reached = {start}
    for _ in range(clicks):
        reached |= set().union(*map(pages_linked_by, reached))
    return reached


def test_every_page_is_at_most_two_clicks_from_the_map() -> None:
    far = set(PAGES) - pages_within(2, MAP) - {README}
    assert not far, f"docs/README.md does not lead to {', '.join(sorted(map(name, far)))}"


def test_every_page_of_a_task_and_of_a_method_is_on_the_map() -> None:
    listed = [*(ROOT / "docs/tasks").glob("*.md"), *(ROOT / "docs/methods").glob("*.md")]
    missing = set(listed) - pages_linked_by(MAP)
    assert not missing, f"docs/README.md does not link {', '.join(sorted(map(name, missing)))}"


def test_the_readme_is_a_screen_and_a_half_with_a_picture_a_release_file_and_five_ways_on() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 1.5 * SCREEN
    assert len(re.findall(r"^!\[", text, flags=re.MULTILINE)) == 1
    assert text.count("```toml") == 1
    assert len(re.findall(r"^- \*\*\[", text, flags=re.MULTILINE)) == 5
    assert MAP in pages_linked_by(README)


def test_every_picture_is_shown_somewhere() -> None:
    shown = {
        (page.parent / link).resolve()
        for page in PAGES
        for link in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    }
    assert not {picture.name for picture in (ROOT / "docs/images").iterdir()} - {picture.name for picture in shown}


def test_the_page_of_a_method_begins_with_use_and_shows_proofs_after_errors() -> None:
    for page in sorted((ROOT / "docs/methods").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        headings = re.findall(r"^##+ (.+)$", text, flags=re.MULTILINE)
        assert headings[0] == "Use it", name(page)
        assert "∎" not in text[: text.index("\n## ", text.index("## Use it") + 1)], f"{name(page)}: a proof comes first"
        if page.stem in OF_NO_METHOD:
            continue
        assert headings[1:3] == ["What readers see", "Errors to expect"], name(page)
        shown = any(block.note.startswith("file: ") and "[release]" in block.text for block in blocks(page))
        assert shown or "cp examples/" in text, f"{name(page)}: which release file?"


OF_NO_METHOD = {"employer-employee", "magnitudes", "suppression"}
"""The definitions, how one option of a method is chosen, and what no release file can ask for yet."""
