"""Files in TOML that people write: read, and their mistakes explained by line, with what to write instead."""

import re
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

from sfumato.errors import ReleaseError
from sfumato.paths import described, is_bundle, is_release, meant

_ENCODINGS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_QUOTES = "“”„‟‘’‚«»"
_BLANKS = "\u00a0\u2007\u202f\u200b\ufeff"
_SECTION_OR_KEY = re.compile(r"\[|[\w.\"'-]+\s*[=:]")
_TEXT = "a text between straight quotes"


def read_toml(path: Path, *, what: str = "a release file") -> tuple[str, dict[str, Any]]:
    """The text of a file and what it says; numbers are exact."""
    text = _text(path, what)
    try:
        # Decimals, so that 0.1 means one tenth and not the nearest binary fraction.
        return text, tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        if path.suffix != ".toml":
            raise _another_file(path, what) from error
        raise _explained(path, text, str(error)) from error


def _text(path: Path, what: str) -> str:
    """The text of a file in UTF-8, which may begin with the mark that Windows puts there."""
    try:
        content = path.read_bytes()
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        do = meant(path, is_release, f"check the path; `sfumato start` writes {what} for your data")
        if is_bundle(path):
            do = f"name the release file it was made from; `sfumato query {path}` asks the bundle"
        elif path.is_file():
            do = "have its owner give you the permission to read it"
        raise ReleaseError(str(path), expected=f"{what} (TOML, in UTF-8)", found=described(path), do=do) from error
    except UnicodeDecodeError as error:
        if path.suffix != ".toml":
            raise _another_file(path, what) from error
        line = content.count(b"\n", 0, error.start) + 1
        letter = content[error.start : error.start + 1].decode("latin-1")
        coding = _ENCODINGS.get(content[:2])
        raise ReleaseError(
            str(path),
            expected=f"{what} (TOML, in UTF-8)",
            found=f"the encoding {coding}" if coding else f"in line {line} a '{letter}' in Latin-1 or Windows-1252",
            do="save the file as UTF-8: editors have it under `Save as`",
        ) from error


def _another_file(path: Path, what: str) -> ReleaseError:
    """A file that is something else: nothing of it is quoted, as it may hold records."""
    found = described(path)
    do = f"name {what}; data files are named in it, under [data]"
    if found.startswith("a data file"):
        do += f"; `sfumato start {path}` writes one"
    return ReleaseError(str(path), expected=f"{what} (TOML, in UTF-8)", found=found, do=meant(path, is_release, do))


def _explained(path: Path, text: str, said: str) -> ReleaseError:
    """What is wrong with a line, and what to write instead."""
    place = re.search(r"\(at line (\d+), column (\d+)\)", said)
    lines = text.split("\n")
    number = int(place[1]) if place else len(lines)
    line = lines[number - 1].strip()
    reason = re.sub(r" \(at [^)]*\)", "", said)
    expected, do = _advice(line, reason, text)
    shown = f"{line}   " if place and _SECTION_OR_KEY.match(line) else ""  # anything else may be a record
    return ReleaseError(
        f"{path}, line {number}", expected=expected, found=f"{shown}({reason[0].lower()}{reason[1:]})", do=do
    )


def _advice(line: str, reason: str, text: str) -> tuple[str, str]:
    """What was expected of a line that is no TOML, and what to do: the mistakes that people make, likely ones first."""
    name, _, value = (part.strip() for part in line.partition("="))
    quotes = " ".join(sign for sign in _QUOTES if sign in line)
    section = re.match(r"\[+\s*([^\]]+?)\s*\]+", line)
    header = section[1] if section else ""
    again = "overwrite" in reason or "twice" in reason or "immutable" in reason
    single = line.startswith("[[") and re.search(rf"^\s*\[\s*{re.escape(header)}\s*\]", text, re.MULTILINE)
    rules: tuple[tuple[object, str, str], ...] = (
        (quotes, _TEXT, f'replace {quotes} by straight quotes "'),
        (
            any(sign in line for sign in _BLANKS),
            "plain blanks",
            "type the blanks of this line again: one is a special one, as web pages have them",
        ),
        (again and single, f"[[{header}]] with two brackets", f"write [[{header}]] where the file has [{header}]"),
        (again and header, f"[{header}] once", f"join the two, or write [[{header}]] if several are meant"),
        (again, f"the key {name} once in its section", "remove one of the two lines"),
        (re.match(r"[\w.-]+\s*:", line), "= between a key and its value", "write = where the line has :"),
        (
            re.fullmatch(r"(True|False|TRUE|FALSE|[Yy]es|[Nn]o|None|null)\b.*", value),
            "true or false, in small letters",
            "write true or false, or leave the line out",
        ),
        (re.search(r"=\s*-?\d+,\d", line), "a decimal point", "write numbers with a point, such as 0.1"),
        ("\\" in line, "a path with /", f"write {line.replace(chr(92), '/')}"),
        (line.count('"') % 2, f"{_TEXT} that is closed on its line", 'add the missing "'),
        ("nclosed array" in reason, "[ … ] that is closed", "add the missing ] here or above"),
        (
            line.count("{") > line.count("}") or re.search(r",\s*}", line),
            "{ … } on one line, without a comma before the }",
            "write it on one line, or as a section of its own",
        ),
        (
            value and re.fullmatch(r"[^\"'\[\]{}=]+", value),
            f"a number, true, false, or {_TEXT}",
            f'write {name} = "{value}"',
        ),
    )
    found = ((expected, do) for meets, expected, do in rules if meets)
    return next(found, ('a line of TOML, such as period = "2025"', "mend the line; docs/release-file.md has examples"))
