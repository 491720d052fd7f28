"""How large the library is: Python tokens and files by room, next to the budget.

Tokens are names, operators, numbers and strings, as ``tokenize`` finds them: comments, line breaks and the length of
names count nothing, so that only less code is smaller.
"""

from __future__ import annotations

import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

__all__ = ["MOST_FILES", "MOST_TOKENS", "SOURCE", "count_tokens", "sizes"]

SOURCE = Path(__file__).parents[1] / "src" / "prudent"
MOST_TOKENS, MOST_FILES = 175_000, 150

_COUNTED = {tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP}


def count_tokens(path: Path) -> int:
    """Count the tokens of a file."""
    with path.open("rb") as stream:
        return sum(token.type in _COUNTED for token in tokenize.tokenize(stream.readline))


def sizes() -> Iterator[tuple[str, int]]:
    """Room and tokens of every file."""
    for path in SOURCE.rglob("*.py"):
        yield path.relative_to(SOURCE).parts[0].removesuffix(".py"), count_tokens(path)


def main() -> None:
    """Print rooms, the largest first."""
    tokens, files = Counter[str](), Counter[str]()
    for room, count in sizes():
        tokens[room] += count
        files[room] += 1
    for room, count in tokens.most_common():
        print(f"{count:9,} {files[room]:5,}  {room}")
    print(f"{tokens.total():9,} {files.total():5,}  in all; at most {MOST_TOKENS:,} tokens in {MOST_FILES:,} files")


if __name__ == "__main__":
    main()
