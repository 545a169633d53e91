"""Drive Spark here: note what lies below the temporary folder while a part is worked on; then end, or die."""

import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir

import pyarrow as pa

from sfumato.checking import checked
from sfumato.chunks import Chunk
from sfumato.keys import Secret
from sfumato.release import load
from sfumato.running import ProtectChunk


@dataclass(frozen=True, kw_only=True)
class Looks:
    """Protects a part, writes down what it sees, and takes some processes down."""

    work: ProtectChunk
    secret: Secret = field(repr=False)
    below: Path
    """The temporary folder."""
    noted: Path
    kills: tuple[int, ...]

    def __call__(self, rows: pa.Table) -> Chunk:
        part = self.work(rows)
        seen = {}
        for folder, _, names in os.walk(self.below):
            for path in (Path(folder) / name for name in names):
                with suppress(FileNotFoundError):  # Spark renames and removes files meanwhile
                    content = path.read_bytes() if path.is_file() else b""
                    seen[str(path.relative_to(self.below))] = {
                        "plain": b"LZ4Block" in content,
                        "key": self.secret.key in content,
                    }
        own = self.noted.with_name(f"{self.noted.name}.{os.getpid()}")  # another part may be noted at the same time
        own.write_text(json.dumps(seen), encoding="utf-8")
        own.replace(self.noted)
        for process in self.kills:
            os.kill(process, signal.SIGKILL)
        return part


def main(release: Path, draft: Path, noted: Path, *, killed: bool) -> None:
    """Work on the parts of the keyed table."""
    with checked(load(release)) as ready:
        from pyspark import SparkContext

        planned = {table.name: table for table in ready.plan.tables}
        kills = (SparkContext._gateway.proc.pid, os.getpid()) if killed else ()
        with ready.tabulate_in_chunks(planned) as cut:
            secret, layout = ready.plan.secret, cut["keyed"].layout
            work = ProtectChunk(statistic=planned["keyed"], secret=secret, layout=layout, folder=draft)
            looks = Looks(work=work, secret=secret, below=Path(gettempdir()), noted=noted, kills=kills)
            sys.stdout.write(json.dumps([part.rows for part in ready.each_chunk(cut["keyed"], looks)]) + "\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]), killed=sys.argv[4] == "killed")
