"""The manifest of a bundle: every file with its size and its digest, checked whenever a bundle is read."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato.errors import BundleError
from sfumato.paths import described, is_bundle, meant

MANIFEST = "manifest.json"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a bundle and check every file against it."""
    manifest, listed = _listed(folder)
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {MANIFEST}
    if found != listed.keys():
        odd = sorted(found ^ listed.keys())
        raise _not_a_bundle(folder, f"files missing or added: {', '.join(odd[:5])}")
    for name, entry in listed.items():
        if _entry(folder / name) != entry:
            raise _not_a_bundle(folder, f"{name} was changed")
    return manifest


def published_on(folder: Path, manifest: Mapping[str, Any]) -> datetime:
    """When a bundle was published; earlier versions did not say it, and the file system knows when it came."""
    published = manifest.get("published")
    if published is None:
        return datetime.fromtimestamp(int((folder / MANIFEST).stat().st_mtime), tz=UTC)
    try:
        return datetime.fromisoformat(published).replace(tzinfo=UTC)
    except (TypeError, ValueError):
        raise _not_a_bundle(folder, f"published = {published!r}, which is no date such as 2026-03-31") from None


def read_listed(folder: Path, name: str) -> bytes:
    """The content of one file of a bundle, once it agrees with the manifest; the other files are not opened."""
    return next(each_listed(folder, [name]))


def each_listed(folder: Path, names: Iterable[str]) -> Iterator[bytes]:
    """The content of one file after the other; the manifest, which may list thousands, is read once for all."""
    _, listed = _listed(folder)
    for name in names:
        if name not in listed:
            raise _not_a_bundle(folder, f"no {name} in the manifest")
        try:
            content = (folder / name).read_bytes()
        except OSError as error:
            raise _not_a_bundle(folder, f"files missing or added: {name}") from error
        if {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)} != listed[name]:
            raise _not_a_bundle(folder, f"{name} was changed")
        yield content


def listed_files(folder: Path) -> dict[str, dict[str, Any]]:
    """What the manifest of a bundle lists: by the name of every file its size and its digest."""
    return _listed(folder)[1]


def _listed(folder: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return manifest, {str(name): dict(entry) for name, entry in manifest["files"].items()}
    except OSError as error:
        publish = "publish it first with `sfumato run`"
        if folder.is_dir() and (folder / MANIFEST).exists():
            publish = "have its owner give you the permission to read it"
        raise BundleError(
            f"bundle {folder}",
            expected="a bundle whose files match its manifest: a folder that `sfumato run` published",
            found=described(folder),
            do=meant(folder, is_bundle, publish),
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _not_a_bundle(folder, str(error) or "no manifest") from error


def _entry(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": path.stat().st_size}


def _not_a_bundle(folder: Path, found: str) -> BundleError:
    return BundleError(
        f"bundle {folder}",
        expected="a bundle whose files match its manifest",
        found=found,
        do="publish it again with `sfumato run`; the stored answers cost nothing",
    )
