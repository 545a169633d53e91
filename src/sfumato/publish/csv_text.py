"""A table as text: codes as they are, quoted only where they must be."""

import pyarrow as pa
import pyarrow.csv


def csv_text(table: pa.Table, *, header: bool = True) -> pa.Buffer:
    """The rows of a table as CSV."""
    plain = {
        name: column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    content = pa.BufferOutputStream()
    options = pyarrow.csv.WriteOptions(include_header=header, quoting_style="needed", batch_size=1 << 16)
    pyarrow.csv.write_csv(pa.table(plain), content, options)
    return content.getvalue()
