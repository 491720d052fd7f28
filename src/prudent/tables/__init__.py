"""Rows of files by column name, a part at a time; errors name file, row and column."""

from typing import TYPE_CHECKING

from prudent.late import late_names
from prudent.tables.columns import Columns, columns  # at once: the module has the same name

if TYPE_CHECKING:
    from prudent.tables.broken_rows import BrokenCell, find_broken_rows
    from prudent.tables.cells import BadCellError, to_numbers, to_values
    from prudent.tables.csv_table import CsvTable
    from prudent.tables.duplicates import DuplicateFinder
    from prudent.tables.given import GivenRows, read_rows
    from prudent.tables.opening import open_bytes, open_table
    from prudent.tables.output import OutputColumn, TableOutput, open_output
    from prudent.tables.parquet_table import ParquetTable
    from prudent.tables.passes import show_passes
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
    "GivenRows",
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
    "read_rows",
    "read_sample",
    "show_passes",
    "to_numbers",
    "to_values",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = late_names(
        __name__,
        {
            "broken_rows": "BrokenCell find_broken_rows",
            "cells": "BadCellError to_numbers to_values",
            "csv_table": "CsvTable",
            "duplicates": "DuplicateFinder",
            "given": "GivenRows read_rows",
            "opening": "open_bytes open_table",
            "output": "OutputColumn TableOutput open_output",
            "parquet_table": "ParquetTable",
            "passes": "show_passes",
            "sample": "Sample place_forecasts read_sample",
            "table": "Chunk Table",
            "unusable_rows": "UnusableRows WithoutRows find_unusable_rows",
        },
    )
