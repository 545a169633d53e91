"""Read the documentation as a program: its code blocks in order, and how to run each kind."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = sorted([ROOT / "README.md", CONTRIBUTING, ROOT / "examples/README.md", *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(r"^(?:<!-- (?P<note>[^>]+) -->\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_WILD = re.compile(r"(?P<rest>…)|(?P<number>\d[\d.,]*)|(?P<bar>[█▌▏]+)|(?P<space>\s+)")
_WIDTH = "120"


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block: its language, its text, and the comment right before it."""

    page: Path
    line: int
    kind: str
    text: str
    note: str

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page=page,
            line=text.count("\n", 0, found.start("text")) + 1,
            kind=found["kind"],
            text=found["text"],
            note=found["note"] or "",
        )
        for found in _FENCE.finditer(text)
    ]


def run_block(block: Block, namespace: dict[str, Any]) -> None:
    """Run a block in the current folder: a file or an edit of one, Python, or commands with the output they show."""
    if block.note.startswith("file: "):
        file = Path(block.note.removeprefix("file: "))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, encoding="utf-8")
    elif block.kind == "python":
        source = "\n" * (block.line - 1) + block.text  # errors name the line of the page
        exec(compile(source, str(block.page), "exec"), namespace)
    elif block.kind in ("console", "sh"):
        _run_commands(block)
    elif block.note.startswith("edit: "):
        _edit(block, Path(block.note.removeprefix("edit: ")))


def _run_commands(block: Block) -> None:
    output = ""
    for line in block.text.splitlines():
        command = line.removeprefix("$ ")
        if command.startswith(("sfumato ", "python ", "cp ")):
            output = _run(block, shlex.split(command, comments=True))
        elif block.kind == "console":
            assert is_shown(line, output), f"{block.where}: the command no longer prints\n{line}\nbut\n{output}"


def _run(block: Block, words: list[str]) -> str:
    if words[0] == "sfumato":
        words = [sys.executable, "-c", "from sfumato.cli import main; main()", *words[1:]]
    elif words[0] == "python":
        words = [sys.executable, *words[1:]]
    environment = {**os.environ, "COLUMNS": _WIDTH}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    expected = int(block.note.removeprefix("fails: ")) if block.note.startswith("fails: ") else 0
    assert done.returncode == expected, f"{block.where}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def is_shown(line: str, output: str) -> bool:
    """Whether a line of the page is in the output, whatever the numbers, the spaces and what … stands for."""
    pattern, end = "", 0
    for wild in _WILD.finditer(line.strip()):
        pattern += re.escape(line.strip()[end : wild.start()])
        pattern += {"rest": r".*?", "number": r"\d[\d.,]*", "bar": r"[█▌▏]+", "space": r"\s+"}[str(wild.lastgroup)]
        end = wild.end()
    return re.search(pattern + re.escape(line.strip()[end:]), output, re.DOTALL) is not None


def _edit(block: Block, file: Path) -> None:
    before, after = (
        "".join(line[1:] + "\n" for line in block.text.splitlines() if line.startswith(sign)) for sign in "-+"
    )
    # What stands after the part shown, such as a comment, stays.
    before, after, text = before.rstrip("\n"), after.rstrip("\n"), file.read_text(encoding="utf-8")
    assert before in text, f"{block.where}: {file} does not have\n{before}"
    file.write_text(text.replace(before, after, 1), encoding="utf-8")
