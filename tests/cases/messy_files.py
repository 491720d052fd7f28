"""Files that people really have: each as bytes, with options of commands, and what comes of it.

All files that are read hold the forecasts and outcomes of ``clean``. Columns are ``f``, ``y`` and ``id``; ``y`` is 0 or
1. The others are refused in one line, which a pattern describes.
"""

from __future__ import annotations

import datetime as dt
import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq

N_ROWS = 60
_RNG = np.random.default_rng(7)
FORECASTS = (np.round(_RNG.uniform(0.05, 0.95, N_ROWS), 3)).tolist()
OUTCOMES = (_RNG.random(N_ROWS) < np.array(FORECASTS)).astype(int).tolist()
IDS = [str(dt.date(2024, 1, 1) + dt.timedelta(days=6 * j)) for j in range(N_ROWS)]

Cells = Sequence[Any]


@dataclass(frozen=True)
class Messy:
    """A file, options, and a pattern of the error; None where the file is read as ``clean``."""

    content: bytes
    options: tuple[str, ...] = ()
    error: str | None = None
    ending: str = "csv"


def lines(f: Cells = FORECASTS, y: Cells = OUTCOMES, ids: Cells = IDS, between: str = ",") -> list[str]:
    """Lines of CSV."""
    return [between.join(("id", "f", "y")), *(between.join(map(str, row)) for row in zip(ids, f, y, strict=True))]


def text(rows: list[str], end: str = "\n") -> bytes:
    return (end.join(rows) + end).encode()


def table(f: Cells = FORECASTS, y: Cells = OUTCOMES, ids: Cells = IDS, between: str = ",") -> bytes:
    return text(lines(f, y, ids, between))


def but(column: Cells, **cells: Any) -> list[Any]:
    """A column with other cells in some rows: ``r3`` is the third."""
    changed = list(column)
    for row, cell in cells.items():
        changed[int(row[1:]) - 1] = cell
    return changed


def zst(content: bytes) -> bytes:
    return pa.compress(content, codec="zstd", asbytes=True)


def parquet(**columns: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table({"id": IDS, "f": FORECASTS, "y": OUTCOMES, **columns}), stream)
    return stream.getvalue()


def sheet(f: Cells = FORECASTS, y: Cells = OUTCOMES, ids: Cells = IDS, blank: int = 0) -> bytes:
    book = openpyxl.Workbook()
    page = book.active
    assert page is not None
    page.append(["id", "f", "y"])
    for row in zip(ids, f, y, strict=True):
        page.append(list(row))
    for _ in range(blank):
        page.append([None, "", None])
    book.create_sheet("notes").append(["not read"])
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


commas = [str(f).replace(".", ",") for f in FORECASTS]
percent = [f"{100 * f:.1f}%" for f in FORECASTS]
words = [("no", "yes")[y] for y in OUTCOMES]
hours = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=j) for j in range(N_ROWS)]  # noqa: DTZ001  # as clocks show it

CLEAN = Messy(table())

READ: dict[str, Messy] = {
    "plain": CLEAN,
    "byte order mark": Messy(b"\xef\xbb\xbf" + table()),
    "line ends of Windows": Messy(text(lines(), "\r\n")),
    "line ends of several kinds": Messy(table().replace(b"\n", b"\r\n", 7)),
    "no last line end": Messy(table().rstrip()),
    "two blank lines at the end": Messy(table() + b"\n\n"),
    "lines of spaces and delimiters at the end": Messy(table() + b",,\n  \n,,\r\n\n"),
    "blank lines inside": Messy(table().replace(b"\n", b"\n\n", 5)),
    "quoted cells": Messy(table().replace(b"2024-01-07,", b'"2024-01-07",')),
    "spaces around numbers": Messy(table([f" {f} " for f in FORECASTS], [f"{y}\t" for y in OUTCOMES])),
    "spaces that do not break": Messy(table([f"\u00a0{f}" for f in FORECASTS])),
    "semicolons": Messy(table(between=";")),
    "tabs": Messy(table(between="\t"), ("--delimiter", "tab")),
    "an unusual delimiter": Messy(table(between="~"), ("--delimiter", "~")),
    "decimal commas, semicolons": Messy(table(commas, between=";"), ("--decimal", ",")),
    "decimal commas in quotes": Messy(table([f'"{f}"' for f in commas]), ("--decimal", ",")),
    "decimal commas, blank end": Messy(table(commas, between=";") + b";;\r\n\r\n", ("--decimal", ",")),
    "per cent": Messy(table(percent)),
    "per cent with spaces": Messy(table([f.replace("%", " %") for f in percent])),
    "per cent with decimal commas": Messy(
        table([f.replace(".", ",") for f in percent], between="\t"), ("--decimal", ",")
    ),
    "true and false": Messy(table(y=[("false", "true")[y] for y in OUTCOMES])),
    "True and FALSE": Messy(table(y=[("FALSE", "True")[y] for y in OUTCOMES])),
    "yes and no": Messy(table(y=words)),
    "whole numbers as floats": Messy(table(y=[f"{y}.0" for y in OUTCOMES])),
    "exponents": Messy(table([f"{f:e}" for f in FORECASTS])),
    "gzip": Messy(gzip.compress(table()), ending="csv.gz"),
    "gzip in two parts": Messy(gzip.compress(table()[:300]) + gzip.compress(table()[300:]), ending="csv.gz"),
    "gzip, semicolons, blank end": Messy(gzip.compress(table(between=";") + b"\n;;\n"), ending="csv.gz"),
    "zstd": Messy(zst(table()), ending="csv.zst"),
    "zstd under another name": Messy(zst(table()), ending="dat"),
    "Excel": Messy(sheet(), ending="xlsx"),
    "Excel, blank rows at the end": Messy(sheet(blank=3), ending="xlsx"),
    "Excel, truth": Messy(sheet(y=[bool(y) for y in OUTCOMES]), ending="xlsx"),
    "Excel, words": Messy(sheet(y=words), ending="xlsx"),
    "Excel, whatever the decimal mark": Messy(sheet(), ("--decimal", ",", "--delimiter", ";"), ending="xlsx"),
    "Parquet": Messy(parquet(), ending="parquet"),
    "Parquet, truth": Messy(parquet(y=[bool(y) for y in OUTCOMES]), ending="parquet"),
    "Parquet in gzip": Messy(gzip.compress(parquet()), ending="parquet.gz"),
}

MISSING = {
    word: but(OUTCOMES, r5=word, r9=word) for word in ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "None", "<NA>")
}

#: Forecasts that lie outside are moved onto the space: the answers are those of ``clipped``.
BEYOND = but(FORECASTS, r3=1.2, r4=-0.1)
CLIPPED = Messy(table(but(FORECASTS, r3=1.0, r4=0.0)))
CLIP: dict[str, Messy] = {
    "CSV": Messy(table(BEYOND), ("--outside", "clip")),
    "decimal commas": Messy(
        table([str(f).replace(".", ",") for f in BEYOND], between=";"), ("--outside", "clip", "--decimal", ",")
    ),
    "Parquet": Messy(parquet(f=BEYOND), ("--outside", "clip"), ending="parquet"),
    "Excel": Messy(sheet(BEYOND), ("--outside", "clip"), ending="xlsx"),
}

REFUSED: dict[str, Messy] = {
    "decimal commas without the option": Messy(
        table(commas, between=";"), (), r"row 1 \(line 2\), column 'f': '0,\d+' is not a number; .* say --decimal ,"
    ),
    "decimal commas between commas": Messy(
        table(commas), ("--decimal", ","), r"row 1 \(line 2\): it has 4 cell.*Cells end at ','; --delimiter takes"
    ),
    "points with the option": Messy(
        table(between=";"), ("--decimal", ","), r"row 1 \(line 2\), column 'f': '0\.\d+' is not a number with --decimal"
    ),
    "separators of thousands": Messy(
        table(but(FORECASTS, r2='"1.234,5"')),
        (),
        r"row 2 \(line 3\), column 'f': '1\.234,5' .*without separators.*--dec",
    ),
    "separators of thousands that are commas": Messy(
        table(but(FORECASTS, r2="1,234"), between=";"), (), r"row 2 \(line 3\), column 'f': '1,234' .*--decimal ,"
    ),
    "underscores": Messy(table(but(FORECASTS, r2="0_1")), (), r"row 2 \(line 3\), column 'f': '0_1' is not a number"),
    "per cent below a number": Messy(
        table(but(FORECASTS, r2="12%")), (), r"row 2 \(line 3\), column 'f': '12%' .*first number .* does not end in %"
    ),
    "a number below per cent": Messy(
        table(but(percent, r4="0.12")), (), r"row 4 \(line 5\), column 'f': '0\.12' .*the first number .* ends in %"
    ),
    "truth for a forecast": Messy(
        table(but(FORECASTS, r2="no")), (), r"row 2 \(line 3\), column 'f': 'no' is not a nu"
    ),
    "a missing forecast": Messy(table(but(FORECASTS, r6="NA")), (), r"row 6 \(line 7\), column 'f': 'NA' stands for a"),
    "a missing outcome": Messy(
        table(y=but(OUTCOMES, r6="NA")), (), r"row 6 \(line 7\), column 'y': 'NA' stands .*--missing drop"
    ),
    "a forecast outside": Messy(table(but(FORECASTS, r3="1.2")), (), r"row 3 \(line 4\), column 'f': 1\.2 .*--outside"),
    "text, although clipped": Messy(
        table(but(FORECASTS, r3="1.2", r7="high")),
        ("--outside", "clip"),
        r"row 7 \(line 8\), column 'f': 'high' is not",
    ),
    "infinity, although clipped": Messy(
        table(but(FORECASTS, r7="inf")),
        ("--outside", "clip"),
        r"row 7 \(line 8\), column 'f': the number must be finite",
    ),
    "a delimiter that is not found": Messy(
        table(between="~"), (), r"there is no column '\w+'; .*cells end at ','; --delimiter takes another"
    ),
    "a cell too many": Messy(table(but(FORECASTS, r8="0.1,0.2")), (), r"row 8 \(line 9\): it has 4 cell.*--delimiter"),
    "a row of empty cells inside": Messy(
        table().replace(b"\n2024-02-12,", b"\n,,\n2024-02-12,"), (), r"row 8 \(line 9\), column '"
    ),
    "an error of Excel": Messy(
        sheet(but(FORECASTS, r4="#DIV/0!")), (), r"row 4 \(line 5\), column 'f': '#DIV/0!' is not a number", "xlsx"
    ),
    "half of a gzip file": Messy(gzip.compress(table())[:200], (), r"cannot be unpacked \(truncated", "csv.gz"),
    "half of a zstd file": Messy(zst(table())[:200], (), r"cannot be unpacked \(truncated", "csv.zst"),
    "half of an Excel file": Messy(sheet()[:3000], (), r"as an Excel file failed", "xlsx"),
    "old Excel": Messy(
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), (), r"neither CSV nor Parquet nor Excel", "xls"
    ),
    "UTF-16": Messy(table().decode().encode("utf-16"), (), r"the file is UTF-16; save it as UTF-8"),
    "gzip of nothing": Messy(gzip.compress(b""), (), r"the file is empty", "csv.gz"),
}
