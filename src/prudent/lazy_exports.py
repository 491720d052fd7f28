"""Public names of a package, imported on first use; the stub file ``__init__.pyi`` is the one list of them."""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from sys import modules
from typing import Any


def lazy_exports(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make ``__getattr__``, ``__dir__`` and ``__all__`` of a package from the imports in its stub file.

    Parameters
    ----------
    package, file : str
        ``__name__`` and ``__file__`` of the package.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    module_of = {
        alias.name: str(node.module) for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    submodules = {module.removeprefix(f"{package}.").split(".")[0] for module in module_of.values()}

    def get(name: str) -> Any:
        if name not in module_of or module_of[name] == package:
            try:
                return import_module(f"{package}.{name}")  # which also makes it an attribute of the package
            except ModuleNotFoundError as error:
                raise AttributeError(f"module {package!r} has no attribute {name!r}") from error
        value = getattr(import_module(module_of[name]), name)
        setattr(modules[package], name, value)  # so that this function is called once for each name
        return value

    return get, lambda: sorted({*vars(modules[package]), *submodules, *module_of}), sorted(module_of)
