"""The permanent factor of every employer as a table of the engine."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from sfumato.engine.connect import Tables
from sfumato.engine.spark_parts import spark_column
from sfumato.engine.text import text
from sfumato.frame import Frame
from sfumato.keys import Secret
from sfumato.noise.factors import Factors
from sfumato.noise.keyed import hashes

if TYPE_CHECKING:
    import ibis.expr.types as ir


def factors_of(secret: Secret) -> Factors:
    """The factors that a key file describes."""
    return Factors(key=secret.key, least=secret.a - 1, most=secret.b - 1)


def factor_table(frame: Frame, tables: Tables, factors: Factors) -> "ir.Table":
    """Each employer's key as `_workplace` and its factor in millionths as `_factor`.

    The keys come from the register, or from the jobs where there is none. A factor is a function of the text of the
    key, so that it is the same whether an engine stores keys as numbers or as text.
    """
    if tables.workplaces is not None and frame.workplaces is not None:
        keys = tables.workplaces.select(_workplace=tables.workplaces[frame.workplaces.key])
    else:
        keys = tables.jobs.select(_workplace=tables.jobs[frame.jobs.workplace]).distinct()
    named = keys.mutate(_name=text(keys["_workplace"], "_name"))
    if tables.backend.name == "pyspark":  # counting leaves keys and factors there; indicators read them
        return spark_column(tables.backend, named, "_factor", _FactorsOfNames(factors=factors)).drop("_name")
    found = named.to_pyarrow()
    return tables.lend(pa.table({"_workplace": found["_workplace"], "_factor": factors.of(hashes(found["_name"]))}))


@dataclass(frozen=True, kw_only=True)
class _FactorsOfNames:
    """The factors of employers by their names: a plain value, which may be sent to another process."""

    factors: Factors

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        return pa.array(self.factors.of(hashes(batch["_name"])))
