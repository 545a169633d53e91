"""An ad-hoc table of many records as the server answers it, beside DuckDB's aggregates of the same records."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from contributor_floor import BARE, SAME, Floor
from contributors import in_turn
from foundation import Tell
from records import ATTRIBUTES, write_records

from sfumato.live import GuardedSession, open_guarded
from sfumato.release import load
from sfumato.serve.core.selection import everything
from sfumato.serve.formats.json_stat import write_json_stat
from sfumato.serve.formats.layout import Options
from sfumato.serve.live.answer_table import answer_table
from sfumato.serve.live.question import LiveQuestion

_PLAIN = f"select {', '.join(ATTRIBUTES)}, sum(turnover) as total from read_parquet('{{path}}') group by all"


def measure_live(folder: Path, *, records: int, repeat: int, tell: Tell) -> dict[str, Any]:
    """Seconds of the sum alone, of the file and in memory, of the same aggregate, and of the whole answer."""
    tell("making records")
    files = write_records(folder, records=records)
    floor = Floor(files.records)
    with (
        duckdb.connect() as plain,
        open_guarded(load(files.plain), lambda step: tell(f"opening the records: {step}")) as live,
    ):
        turns = {
            "file": lambda: plain.execute(_PLAIN.format(path=files.records)).to_arrow_table(),
            "bare": lambda: floor.answer(BARE),
            "floor": lambda: floor.answer(SAME),
            "live": lambda: _answered(live),
        }
        seconds = in_turn(turns, repeat, tell, "ad-hoc tables")
    floor.close()
    return {"records": records, "seconds": seconds}


def _answered(live: GuardedSession) -> pa.Table:
    """Everything the server does with a question, but for reading the request and sending the answer."""
    question = LiveQuestion(statistic="total", measure="turnover", by=list(ATTRIBUTES))
    statistic = question.plan(live)
    table = answer_table(live, statistic, live.answer(statistic))
    content = write_json_stat(table.answer(everything(table)), Options())
    return pa.table({"answer": [content]})
