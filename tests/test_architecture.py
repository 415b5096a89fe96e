"""The map of ARCHITECTURE.md, held: who may import whom, and what a module may look like."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

MAY_IMPORT = {
    "cube": set(),
    "inference": {"cube"},
    "accountant": {"cube"},
    "synthesis": {"cube", "inference"},
    "planner": {"cube", "inference", "accountant"},
    "proxy": {"cube", "inference", "accountant", "planner", "synthesis"},
}
# Each outside library has one home; numpy and scipy may be used anywhere.
HOMES = {
    "sqlglot": {"planner"},
    "opendp": {"accountant"},
    "pyarrow": {"proxy"},
    "grpc": {"proxy"},
    "duckdb": {"proxy", "planner"},
    "sqlite3": {"accountant"},
    "psycopg": {"accountant"},
    "cryptography": {"accountant", "proxy"},
    "prometheus_client": {"proxy"},
    "matplotlib": {"proxy"},
    "jinja2": {"proxy"},
}
# Within a component, the files that may hold a DuckDB connection.
DUCKDB_FILES = {
    "planner/scratchpad.py",
    "proxy/drafting.py",
    "proxy/outer_sql.py",
    "proxy/sources/closed.py",
    "proxy/sources/duckdb_source.py",
    "proxy/sources/private_view.py",
    "proxy/sources/public_file.py",
}
N_LINES_MAX = 400


def sources(component: str) -> list[Path]:
    return [path for path in sorted((ROOT / component).rglob("*.py")) if "_pb2" not in path.name]


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("component", MAY_IMPORT)
def test_a_component_imports_only_what_the_map_allows(component: str) -> None:
    for path in sources(component):
        foreign = (set(imported(path)) & MAY_IMPORT.keys()) - {component} - MAY_IMPORT[component]
        assert not foreign, f"{path.relative_to(ROOT)} imports {sorted(foreign)}"


@pytest.mark.parametrize("library", HOMES)
def test_a_library_is_used_only_at_home(library: str) -> None:
    for component in MAY_IMPORT.keys() - HOMES[library]:
        for path in sources(component):
            assert library not in set(imported(path)), path.relative_to(ROOT)


def test_duckdb_connections_live_in_named_files_only() -> None:
    users = {
        str(path.relative_to(ROOT))
        for component in MAY_IMPORT
        for path in sources(component)
        if "duckdb" in set(imported(path))
    }
    assert users <= DUCKDB_FILES


def test_only_the_release_reads_a_source() -> None:
    for component in MAY_IMPORT:
        for path in sources(component):
            calls = [
                node.func.attr
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Attribute | ast.Name)
                and "source" in ast.unparse(node.func.value).lower()
            ]
            if path != ROOT / "accountant" / "release.py":
                assert "measure" not in calls, path.relative_to(ROOT)


def test_only_the_gate_releases() -> None:
    users = {
        str(path.relative_to(ROOT))
        for component in MAY_IMPORT
        for path in sources(component)
        if "from accountant.release import" in path.read_text()
    }
    assert users == {"accountant/gate.py"}


@pytest.mark.parametrize("component", MAY_IMPORT)
def test_modules_open_with_what_they_are_and_stay_readable(component: str) -> None:
    for path in sources(component):
        text = path.read_text()
        assert ast.get_docstring(ast.parse(text)), f"{path.relative_to(ROOT)} has no docstring"
        assert text.count("\n") <= N_LINES_MAX, f"{path.relative_to(ROOT)} is too long"


@pytest.mark.parametrize("component", MAY_IMPORT)
def test_every_package_has_a_charter(component: str) -> None:
    assert (ROOT / component / "README.md").is_file()
