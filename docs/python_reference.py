"""Writes the reference pages of the Python packages, which autodoc fills in.

One page for each folder of a package. A page shows the docstring of each module, and the public
classes and functions that the module itself defines. It imports none of the modules that it lists.
"""

import ast
from collections.abc import Iterator
from pathlib import Path


def write_python_reference(root: Path, packages: tuple[str, ...], target: Path) -> None:
    """Write a page for each folder of the packages, and one that lists them."""
    target.mkdir(parents=True, exist_ok=True)
    folders = [
        init.parent
        for package in packages
        for init in sorted((root / package).rglob("__init__.py"))
    ]
    names = [_dotted(root, folder) for folder in folders]
    for name, folder in zip(names, folders, strict=True):
        text = "\n".join(_page(root, name, folder))
        (target / f"{name}.rst").write_text(text, encoding="utf-8")
    contents = [
        "The Python packages",
        "===================",
        "",
        ".. toctree::",
        "   :maxdepth: 1",
        "",
    ]
    contents += [f"   {name}" for name in names]
    (target / "index.rst").write_text("\n".join([*contents, ""]), encoding="utf-8")


def _page(root: Path, name: str, folder: Path) -> Iterator[str]:
    yield from (name, "=" * len(name), "", f".. automodule:: {name}", "   :no-members:", "")
    for path in sorted(folder.glob("*.py")):
        if path.name == "__init__.py":
            continue
        module = _dotted(root, path.with_suffix(""))
        public = ", ".join(_public(path))
        shown = f"   :members: {public}" if public else "   :no-members:"
        yield from (module, "-" * len(module), "", f".. automodule:: {module}")
        yield from (shown, "   :show-inheritance:", "")


def _public(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name


def _dotted(root: Path, path: Path) -> str:
    return ".".join(path.relative_to(root).parts)
