from prudent.tables.columns import Columns, columns
from prudent.tables.csv_files import find_delimiter
from prudent.tables.engine import collect, numbers, show_passes
from prudent.tables.file_sets import Names, quoted_text
from prudent.tables.file_table import FileTable, Wanted, open_bytes, open_table
from prudent.tables.in_order import rows_in_order
from prudent.tables.moment_sums import measure_table
from prudent.tables.parquet_files import holds_numbers, unpacked_bytes, unreadable
from prudent.tables.partition import Partition, first_partition
from prudent.tables.quantiles import resolve_in_table
from prudent.tables.row_diagnostics import (
    BrokenCell,
    UnusableRows,
    find_broken_rows,
    find_unusable_rows,
    naming_rows,
    require_usable,
    rules_of,
)
from prudent.tables.rows import (
    SNAPPED,
    UNCLEAR,
    Rows,
    counted_rows,
    n_without_weight,
    place_rows,
    require_total,
    some_rows,
    with_known_outcomes,
    without_missing,
)
from prudent.tables.sample import Sample, read_sample, require_forecast_columns
from prudent.tables.utilities import TableUtilities, linear, table_utilities

__all__ = [
    "SNAPPED",
    "UNCLEAR",
    "BrokenCell",
    "Columns",
    "FileTable",
    "Names",
    "Partition",
    "Rows",
    "Sample",
    "TableUtilities",
    "UnusableRows",
    "Wanted",
    "collect",
    "columns",
    "counted_rows",
    "find_broken_rows",
    "find_delimiter",
    "find_unusable_rows",
    "first_partition",
    "holds_numbers",
    "linear",
    "measure_table",
    "n_without_weight",
    "naming_rows",
    "numbers",
    "open_bytes",
    "open_table",
    "place_rows",
    "quoted_text",
    "read_sample",
    "require_forecast_columns",
    "require_total",
    "require_usable",
    "resolve_in_table",
    "rows_in_order",
    "rules_of",
    "show_passes",
    "some_rows",
    "table_utilities",
    "unpacked_bytes",
    "unreadable",
    "with_known_outcomes",
    "without_missing",
]
