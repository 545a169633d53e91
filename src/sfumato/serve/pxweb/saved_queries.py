"""Queries that people saved: one small file each, named by what is in it, on the disk before the answer goes out."""

import json
import re
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from sfumato.durable import write_durably
from sfumato.serve.errors import RefusedError, not_found

_NAME = re.compile(r"[0-9a-f]{24}")


@dataclass(frozen=True, kw_only=True)
class SavedQueries:
    """A folder of saved queries; the same query is kept once."""

    folder: Path
    most: int

    def save(self, query: dict[str, Any]) -> str:
        """Keep a query and return its name."""
        content = json.dumps(query, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
        name = blake2b(content, digest_size=12).hexdigest()
        path = self.folder / f"{name}.json"
        if path.exists():
            return name
        if self.folder.exists() and sum(1 for _ in self.folder.iterdir()) >= self.most:
            raise RefusedError(
                "saved queries",
                expected=f"at most {self.most:,} of them",
                found="as many already",
                do="keep the address of the query instead: it says all",
                status=507,
            )
        write_durably(path, content)
        return name

    def read(self, name: str) -> dict[str, Any]:
        """A query that was kept."""
        path = self.folder / f"{name}.json"
        if not _NAME.fullmatch(name) or not path.is_file():
            raise not_found("saved query", name, "save it again")
        kept: dict[str, Any] = json.loads(path.read_bytes())
        return kept
