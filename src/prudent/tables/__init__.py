"""Rows of files by column name, a part at a time; errors name file, row and column."""

from prudent.tables.broken_rows import BrokenCell, find_broken_rows
from prudent.tables.cells import BadCellError, to_numbers, to_values
from prudent.tables.columns import Columns, columns
from prudent.tables.csv_table import CsvTable
from prudent.tables.duplicates import DuplicateFinder
from prudent.tables.opening import open_bytes, open_table
from prudent.tables.output import OutputColumn, TableOutput, open_output
from prudent.tables.parquet_table import ParquetTable
from prudent.tables.sample import Sample, place_forecasts, read_sample
from prudent.tables.table import Chunk, Table
from prudent.tables.unusable_rows import UnusableRows, WithoutRows, find_unusable_rows

__all__ = [
    "BadCellError",
    "BrokenCell",
    "Chunk",
    "Columns",
    "CsvTable",
    "DuplicateFinder",
    "OutputColumn",
    "ParquetTable",
    "Sample",
    "Table",
    "TableOutput",
    "UnusableRows",
    "WithoutRows",
    "columns",
    "find_broken_rows",
    "find_unusable_rows",
    "open_bytes",
    "open_output",
    "open_table",
    "place_forecasts",
    "read_sample",
    "to_numbers",
    "to_values",
]
