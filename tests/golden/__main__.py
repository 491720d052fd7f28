"""Write all golden files anew."""

from __future__ import annotations

import json

from golden.cases import CASES, EXPECTED, answer


def write() -> None:
    """Ask everything, and keep the answers."""
    for family, names in CASES.items():
        folder = EXPECTED / family
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.json"):
            old.unlink()
        for name in names:
            text = json.dumps(answer(family, name), indent=1, ensure_ascii=False)
            (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
