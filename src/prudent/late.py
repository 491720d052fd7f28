"""Names of a package that are imported when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules
from typing import Any

__all__ = ["late_names"]


def late_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the functions ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        Its full name.
    homes : mapping of str to str
        Modules of the package, and the names that each has for it, separated by spaces. The modules themselves are
        found, too.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name in home_of:
            value = getattr(import_module(f"{package}.{home_of[name]}"), name)
        elif name in homes:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(modules[package], name, value)  # from now on it is found without asking
        return value

    def names() -> list[str]:
        return sorted({*vars(modules[package]), *homes, *home_of})

    return get, names
