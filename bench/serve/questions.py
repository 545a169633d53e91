"""Questions to a server from a seed: good ones of every interface, and what attackers and broken programs send."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

V2, V1 = "/api/v2", "/api/v1/en/tables"
FORMATS = ("json-stat2", "csv", "xlsx", "html", "px", "parquet", "json-px")
SDMX = ("genericdata", "structurespecificdata", "jsondata", "csvdata", "csvdata2")
WRITTEN_IN_PARTS = ("genericdata", "structurespecificdata", "csvdata")
LABELS = (
    "<script>alert(1)</script>",
    "\u202egnp.exe",
    "=cmd|' /C calc'!A0",
    "a\x00b",
    "'\"><img src=x>",
    "%0d%0aSet-Cookie:x=1",
)
_MANY = 20_000
"""Figures that a question with codes of its own has at the most; whole tables may have more."""
_READERS = 500


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is sent, and whether the sender may expect an answer."""

    kind: str
    sent: bytes
    good: bool = False


@dataclass(frozen=True, kw_only=True)
class AskedTable:
    """A table as the server describes it: codes by dimension, which of them are time, and its published files."""

    id: str
    codes: dict[str, list[str]]
    time: tuple[str, ...]
    files: tuple[str, ...]

    @classmethod
    def of(cls, name: str, metadata: dict[str, Any], files: Sequence[str]) -> "AskedTable":
        """Read metadata in JSON-stat."""
        codes = {key: list(one["category"]["index"]) for key, one in metadata["dimension"].items()}
        return cls(id=name, codes=codes, time=tuple(metadata["role"].get("time", ())), files=tuple(files))


class Questions:
    """An endless mix, the same for the same seed."""

    def __init__(self, seed: int, tables: list[AskedTable]) -> None:
        self._chance, self._tables = random.Random(seed), tables
        self.saved: list[str] = []
        """Names of saved queries that were told."""
        self._good: list[tuple[str, Callable[[], bytes], int]] = [
            ("data", self._data, 30),
            ("post", self._post, 8),
            ("whole", self._whole, 3),
            ("sdmx 2.1", self._sdmx, 8),
            ("sdmx 3.0", self._sdmx_3, 5),
            ("structure", self._structure, 3),
            ("pxweb 1", self._old, 6),
            ("page", self._page, 12),
            ("small", self._small, 8),
            ("file", self._file, 3),
            ("mcp", self._mcp, 6),
            ("save", self._save, 5),
            ("saved", self._of_saved, 3),
        ]
        self._hostile: list[tuple[str, Callable[[], bytes], int]] = [
            ("misspelt", self._misspelt, 6),
            ("huge", self._huge, 3),
            ("nested", self._nested, 3),
            ("broken text", self._broken, 4),
            ("path", self._path, 5),
            ("headers", self._headers, 3),
            ("lengths", self._lengths, 4),
            ("label", self._label, 4),
            ("bomb", self._bomb, 2),
        ]

    def __iter__(self) -> Iterator[Question]:
        while True:
            good = self._chance.random() < 0.75
            kinds = self._good if good else self._hostile
            ((kind, write, _),) = self._chance.choices(kinds, [weight for *_, weight in kinds])
            yield Question(kind=kind, sent=write(), good=good)

    # What every program may ask.

    def _data(self) -> bytes:
        table = self._table()
        written = self._chance.choice(FORMATS)
        return self._get(f"{V2}/tables/{table.id}/data?outputFormat={written}&{self._selected(table)}")

    def _post(self) -> bytes:
        table = self._table()
        return self._sent(f"{V2}/tables/{table.id}/data?outputFormat=csv", {"selection": self._selection(table)})

    def _whole(self) -> bytes:
        table = self._table()
        codes = "&".join(f"valueCodes[{name}]=*" for name in table.codes)
        return self._get(f"{V2}/tables/{table.id}/data?outputFormat={self._chance.choice(('csv', 'json-px'))}&{codes}")

    def _sdmx(self) -> bytes:
        table = self._table()
        chance = self._chance.random()
        if chance < 0.2:
            return self._get(f"/sdmx/2.1/availableconstraint/{table.id}")
        if chance < 0.4:  # all of the flow
            return self._get(f"/sdmx/2.1/data/{table.id}?format={self._chance.choice(WRITTEN_IN_PARTS)}")
        kinds = "+".join(self._some(table.codes["contents"], 2))
        key = "." * (len(table.codes) - len(table.time) - 1) + kinds
        return self._get(f"/sdmx/2.1/data/{table.id}/{key}?format={self._chance.choice(SDMX)}")

    def _sdmx_3(self) -> bytes:
        table = self._table()
        kinds = ",".join(self._some(table.codes["contents"], 2))
        return self._get(f"/sdmx/3.0/data/dataflow/SFUMATO/{table.id}/+/*?c[CONTENTS]={quote(kinds)}&format=csvdata2")

    def _structure(self) -> bytes:
        table = self._table()
        return self._get(
            self._chance.choice(
                (
                    f"/sdmx/2.1/dataflow/SFUMATO/{table.id}/latest?references=all",
                    f"/sdmx/3.0/structure/dataflow/SFUMATO/{table.id}/+?references=all",
                    f"/catalog/{table.id}?format={self._chance.choice(('jsonld', 'turtle', 'rdfxml', 'schema.org'))}",
                )
            )
        )

    def _old(self) -> bytes:
        table = self._table()
        query = [
            {"code": one["variableCode"], "selection": {"filter": "item", "values": one["valueCodes"]}}
            for one in self._selection(table)
        ]
        body = {"query": query, "response": {"format": self._chance.choice(("json", "json-stat", "px", "csv"))}}
        return self._sent(f"{V1}/{table.id}", body)

    def _page(self) -> bytes:
        table = self._table()
        more = self._chance.choice(("", "&lang=de", "&heading=contents", "&chart=bars"))
        return self._get(f"/tables/{table.id}?{self._selected(table, 400)}{more}", "Accept: text/html")

    def _small(self) -> bytes:
        table = self._table()
        path = self._chance.choice(
            (
                "/",
                f"{V2}/config",
                f"{V2}/tables",
                f"{V2}/tables/{table.id}/metadata",
                "/openapi.json",
                "/health",
                "/metrics",
            )
        )
        return self._get(path, method=self._chance.choice(("GET", "HEAD")))

    def _file(self) -> bytes:
        table = self._table()
        path = f"/tables/{table.id}/files"
        if not table.files or self._chance.random() < 0.3:
            return self._get(path)
        part = self._chance.choice((f"{self._chance.randrange(100)}-", "-50", "0-9", "5-2", "999999999-", "0-1,4-5"))
        return self._get(self._chance.choice(table.files), f"Range: bytes={part}")

    def _mcp(self) -> bytes:
        table = self._table()
        codes = {one["variableCode"]: one["valueCodes"] for one in self._selection(table, 100)}
        kinds = codes.pop("contents")
        tool, arguments = self._chance.choice(
            (
                ("get_data", {"table": table.id, "codes": codes, "figures": kinds}),
                ("describe_table", {"table": table.id}),
                ("search_tables", {"query": table.id[:4]}),
            )
        )
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        return self._sent("/mcp", call, "Accept: application/json, text/event-stream")

    def _save(self) -> bytes:
        table = self._table()
        return self._sent(
            f"{V2}/savedqueries",
            {"tableId": table.id, "selection": {"selection": self._selection(table)}, "outputFormat": "csv"},
        )

    def _of_saved(self) -> bytes:
        if not self.saved:
            return self._save()
        return self._get(f"{V2}/savedqueries/{self._chance.choice(self.saved)}/data")

    # What nobody should send.

    def _misspelt(self) -> bytes:
        path = f"{V2}/tables/{self._table().id}/data"
        wrong = (
            "valueCode[place]=1",
            "valueCodes[nothing]=*",
            "outputFormat=exe",
            "valueCodes[place]=top(",
            "valueCodes[]=",
        )
        return self._get(f"{path}?{self._chance.choice(wrong)}&{self._chance.random()}")

    def _huge(self) -> bytes:
        length = self._chance.choice((20_000, 200_000, 1_100_000))
        codes = ["x" * 50 + str(at) for at in range(length // 60)]
        body = {"selection": [{"variableCode": "place", "valueCodes": codes}]}
        return self._sent(f"{V2}/{self._chance.choice((f'tables/{self._table().id}/data', 'savedqueries'))}", body)

    def _nested(self) -> bytes:
        deep = self._chance.choice((15, 30, 100_000))
        return self._sent(
            self._chance.choice((f"{V2}/tables/{self._table().id}/data", "/mcp")), b"[" * deep + b"]" * deep
        )

    def _broken(self) -> bytes:
        text = bytes(self._chance.randrange(256) for _ in range(self._chance.randrange(1, 200)))
        if self._chance.random() < 0.5:
            return self._sent(f"{V2}/tables/{self._table().id}/data", text)
        return self._get(f"{V2}/tables/{self._table().id}/data?valueCodes[place]=%ff%fe{quote(text)}")

    def _path(self) -> bytes:
        tricks = (
            "../../etc/passwd",
            "..%2f..%2fmanifest.json",
            "%2e%2e/%2e%2e",
            "..\\..\\x",
            "%00",
            "/".join([".."] * 40),
            "./." * 50,
        )
        places = (
            f"/tables/{self._table().id}/files/",
            "/static/",
            f"{V2}/savedqueries/",
            "//",
            "/sdmx/2.1/data/",
            "/catalog/",
        )
        return self._get(self._chance.choice(places) + self._chance.choice(tricks))

    def _headers(self) -> bytes:
        many = self._chance.choice((50, 200, 5_000))
        return self._get("/health", *(f"X-{at}: {self._chance.random()}" for at in range(many)))

    def _lengths(self) -> bytes:
        path = f"{V2}/tables/{self._table().id}/data"
        lengths = (
            ["Content-Length: 5", "Transfer-Encoding: chunked"],
            ["Content-Length: 5", "Content-Length: 6"],
            ["Content-Length: -1"],
            ["Content-Length: 99999999999999999999"],
            ["Transfer-Encoding: gzip, chunked"],
            ["Content-Length: 0x10"],
        )
        return self._written("POST", path, *self._chance.choice(lengths)) + b"0\r\n\r\nGET /health HTTP/1.1\r\n\r\n"

    def _label(self) -> bytes:
        text = quote(self._chance.choice(LABELS))
        table = self._table()
        path = self._chance.choice(
            (f"/tables/{table.id}?group=", "/?query=", f"/tables/{table.id}/codes?find=", "/tables/")
        )
        return self._get(path + text, "Accept: text/html")

    def _bomb(self) -> bytes:
        return self._sent(f"{V2}/savedqueries", b"\x28\xb5\x2f\xfd" + b"\x00" * 5_000, "Content-Encoding: zstd")

    # How it is written.

    def _table(self) -> AskedTable:
        return self._chance.choice(self._tables)

    def _some(self, codes: list[str], most: int) -> list[str]:
        return self._chance.sample(codes, self._chance.randint(1, max(1, min(most, len(codes)))))

    def _selection(self, table: AskedTable, most: int = _MANY) -> list[dict[str, Any]]:
        """Codes of every dimension, in no order: there are more selections than anything could keep."""
        found, names = [], list(table.codes)
        self._chance.shuffle(names)
        for name in names:
            chosen = self._some(table.codes[name], min(40, most))
            most = max(most // len(chosen), 1)
            found.append({"variableCode": name, "valueCodes": chosen})
        return found

    def _selected(self, table: AskedTable, most: int = _MANY) -> str:
        return "&".join(
            f"valueCodes[{one['variableCode']}]={quote(','.join(_alone(code) for code in one['valueCodes']))}"
            for one in self._selection(table, most)
        )

    def _get(self, target: str, *headers: str, method: str = "GET") -> bytes:
        return self._written(method, target, *headers)

    def _sent(self, target: str, body: Any, *headers: str) -> bytes:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        own = (f"Content-Length: {len(content)}", "Content-Type: application/json")
        return self._written("POST", target, *own, *headers) + content

    def _written(self, method: str, target: str, *headers: str) -> bytes:
        reader = self._chance.randrange(_READERS)
        said = self._chance.choice(("", "gzip", "zstd", "gzip, zstd;q=0.5", "identity, *;q=0"))
        lines = [
            f"{method} {target.replace(' ', '%20')} HTTP/1.1",
            "Host: localhost",
            f"X-Forwarded-For: 10.9.{reader // 250}.{reader % 250 + 1}",
            *([f"Accept-Encoding: {said}"] if said else []),
            *headers,
            "Connection: close",
        ]
        return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape")


def _alone(code: str) -> str:
    """A code that could be taken for something else, written as itself."""
    return f"range({code},{code})" if set(code) & set("*?,()") else code
