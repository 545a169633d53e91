"""Styles and modules of the page, read once; their address changes when one of them does."""

from dataclasses import dataclass
from hashlib import blake2b
from importlib.resources import files
from pathlib import PurePath

from sfumato.serve.served import Rendered, rendered

_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, kw_only=True)
class Assets:
    """Files by name, and the version that their addresses have."""

    version: str
    files: dict[str, Rendered]

    @classmethod
    def read(cls) -> "Assets":
        """Read the files of the package."""
        folder = files("sfumato.serve.page") / "static"
        found = {file.name: file.read_bytes() for file in folder.iterdir() if PurePath(file.name).suffix[1:] in _TYPES}
        version = blake2b(digest_size=6)
        for name in sorted(found):
            version.update(name.encode() + b"\0" + found[name])
        return cls(version=version.hexdigest(), files={name: _kept(name, text) for name, text in found.items()})

    def path(self, name: str) -> str:
        """Where a file is found."""
        return f"/static/{self.version}/{name}"


def _kept(name: str, content: bytes) -> Rendered:
    made = rendered(content, media_type=_TYPES[PurePath(name).suffix[1:]])
    # Another version has another address.
    return Rendered(content=content, headers={**made.headers, "Cache-Control": "public, max-age=31536000, immutable"})
