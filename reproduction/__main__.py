"""Run the paper's experiments: ``python -m reproduction`` or, in under a minute, ``python -m reproduction --quick``.

Exit codes: 0, 2 for a wrong command or wrong data, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from prudent.errors import FileFormatError, InputError
from reproduction.run import run_reproduction

_ROOT = Path(__file__).parents[1]


def main(arguments: list[str] | None = None) -> int:
    """Parse, run, print and write."""
    options = _parser().parse_args(arguments)
    output: Path | None = options.output
    try:
        found = run_reproduction(
            options.data_dir,
            seeds=options.seeds,
            quick=options.quick,
            other_data=options.other_data,
            keep=(output or _ROOT / ".cache" / "reproduction") / "seeds",
            progress=True,
        )
        print(found.to_json() if options.json else found)
        for path in [] if output is None else found.save(output):
            print(f"wrote {path}", file=sys.stderr)
    except (InputError, FileFormatError, OSError) as error:
        print(f"reproduction: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("reproduction: interrupted; finished seeds are kept, run it again to continue.", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description="Run the paper's experiments and what the exact policy adds; interrupted runs continue.",
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=_ROOT.parent / "shared" / "data",
        help="folder with bike_sharing_day.csv and cal_housing.data[.gz]; ../shared/data by default",
    )
    parser.add_argument("--seeds", type=int, help="random splits; 20 by default, 2 with --quick")
    parser.add_argument("--quick", action="store_true", help="smaller data and grids: under a minute")
    parser.add_argument("--json", action="store_true", help="print the result alone, as JSON")
    parser.add_argument("-o", "--output", type=Path, help="folder for JSON, Markdown, figures and finished seeds")
    parser.add_argument(
        "--other-data", action="store_true", help="accept files with the right columns and other rows than published"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
