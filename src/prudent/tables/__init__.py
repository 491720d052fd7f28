"""Rows of files by column name, a part at a time; errors name file, row and column."""

from prudent.tables.broken_rows import BrokenCell, find_broken_rows
from prudent.tables.cells import BadCellError, to_numbers, to_values
from prudent.tables.columns import Columns, columns
from prudent.tables.csv_table import CsvTable
from prudent.tables.duplicates import DuplicateFinder
from prudent.tables.given import GivenRows, read_rows
from prudent.tables.opening import open_bytes, open_table
from prudent.tables.output import OutputColumn, TableOutput, open_output
from prudent.tables.parquet_table import ParquetTable
from prudent.tables.passes import show_passes
from prudent.tables.sample import Sample, place_forecasts, read_sample
from prudent.tables.table import Chunk, Table

__all__ = [
    "BadCellError",
    "BrokenCell",
    "Chunk",
    "Columns",
    "CsvTable",
    "DuplicateFinder",
    "GivenRows",
    "OutputColumn",
    "ParquetTable",
    "Sample",
    "Table",
    "TableOutput",
    "columns",
    "find_broken_rows",
    "open_bytes",
    "open_output",
    "open_table",
    "place_forecasts",
    "read_rows",
    "read_sample",
    "show_passes",
    "to_numbers",
    "to_values",
]
