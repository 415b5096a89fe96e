"""The map of ARCHITECTURE.md, held: who may import whom, and what a module may look like.

Imports point down: between packages, between the subpackages of one, and between the rooms of each
folder. The floors are listed here from the top down, so that a new room has to be given its place.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

MAY_IMPORT = {
    "cube": set(),
    "inference": {"cube"},
    "accountant": {"cube"},
    "synthesis": {"cube", "inference"},
    "local_dp": {"cube", "inference"},
    "streams": {"cube", "inference"},
    "planner": {"cube", "inference", "accountant"},
    "proxy": {"cube", "inference", "accountant", "planner", "synthesis", "local_dp", "streams"},
    "tacit_client": set(),  # what analysts import: it knows of the server by the wire alone
}
# Inside a package: its rooms (subpackages, and the modules beside them), a floor a line, from the
# top down. A room imports from the floors below its own, and from no other room of its floor.
FLOORS = {
    "accountant": (
        "gate auditor",
        "ledger exact",
        "cost noise source",
        "grouping",
    ),
    "inference": (
        "estimator independence",
        "joint remap scaling memory",
        "block_estimates marginals blue",
        "posterior",
        "error_terms",
        "noise_law history",
    ),
    "synthesis": (
        "holders",
        "merging",
        "strata",
        "drawing pairwise published",
        "model references",
        "sketch",
        "privbayes",
        "networks known",
        "buckets choice fitting",
        "tables",
    ),
    "local_dp": (
        "planning robustness",
        "columns estimates submission",
        "campaign",
        "channels",
        "answer_store",
        "respondent",
        "draws",
    ),
    "streams": (
        "merging",
        "declared planning",
        "visit_epoch",
        "epoch visit_estimates",
        "estimates arrivals counters",
        "mechanism population",
        "state windows",
        "randomness",
    ),
    "planner": (
        "planner",
        "type_rules made_relations",
        "lowering",
        "domain batch catalog_sql",
        "meaning",
        "sql measuring",
        "workload",
        "cache decision level_summary belief",
    ),
    "proxy": (
        "__main__",
        "cli",
        "bootstrap wire",
        "engine",
        "marginals catalog outer_sql",
        "synthetic_tables streams",
        "collections federation",
        "feature",
        "tables identity workers",
        "admin monitoring",
        "config",
        "api reporting scheduling sources",
        "shared",
    ),
    "proxy/wire": (
        "server",
        "tacit flight postgres",
        "sessions errors arrow_ipc",
        "tls",
    ),
}
GENERATED = {"protocol"}  # on the ground, under everything
N_ROOMS_MAX = 24
# Each outside library has one home; numpy and scipy may be used anywhere.
HOMES = {
    "sqlglot": {"planner", "proxy"},  # of the proxy, the one folder below
    "pyspark": {"proxy"},
    "opendp": {"accountant"},
    "pyarrow": {"proxy", "tacit_client"},
    "adbc_driver_flightsql": {"tacit_client"},
    "sqlalchemy": {"tacit_client"},
    "grpc": {"proxy", "tacit_client"},
    "duckdb": {"proxy", "planner"},
    "sqlite3": {"accountant", "proxy"},  # of the proxy, the one folder below
    "psycopg": {"accountant"},
    "cryptography": {"accountant", "proxy"},
    "prometheus_client": {"proxy"},
    "matplotlib": {"proxy", "tacit_client"},
    "jinja2": {"proxy"},
    "prompt_toolkit": {"proxy"},
    "pygments": {"proxy"},
}
# Within a component, the files that may hold a DuckDB connection.
DUCKDB_FILES = {
    "planner/domain/scratchpad.py",
    "proxy/cli/draft/source.py",
    "proxy/outer_sql/closed_database.py",
    "proxy/sources/closed.py",
    "proxy/sources/duckdb_source.py",
    "proxy/sources/private_view.py",
    "proxy/sources/public/file.py",
    "proxy/sources/reading.py",
}
# What makes bytes of Arrow data: these alone, and what leaves passes `proxy/api/clean_arrow.py`.
ARROW_WRITERS = {
    "proxy/cli/shared/files.py": "clean_table",
    "proxy/synthetic_tables/store.py": "clean_table",
    "proxy/wire/arrow_ipc.py": "clean_batches",
    "proxy/outer_sql/process.py": "pipe",  # to a process of the server's own, and back
    "proxy/sources/extract/chunks.py": "_chunks",  # encrypted, by a key that is kept nowhere
}
WRITES_ARROW = re.compile(
    r"new_stream|new_file|serialize|(write|to)_(table|csv|feather|dataset|parquet|batch|metadata)"
    r"|_export_to_c\w*|__arrow_\w+__|[A-Z]\w*(StreamWriter|FileWriter|ParquetWriter|CSVWriter)"
    r"|ParquetWriter|CSVWriter"
)
N_LINES_MIN, N_LINES_MAX = 60, 700
N_MODULES_MAX = 16  # in a folder
N_PAST_A_FACE_MAX = 20
N_LONELY_MAX = 43  # modules that one other of their folder imports, and nobody else
# Modules of fewer lines: values that several folders import, and what a process must load alone.
SHORT = {
    "accountant.ledger.group_commit",
    "local_dp.channels.choice",
    "planner.cache",
    "proxy.__main__",
    "proxy.config.sharing",
    "proxy.monitoring.background",
    "proxy.reporting.pages",
    "proxy.shared.address",
    "proxy.shared.renewal_text",
    "proxy.shared.tokens",
    "tacit_client.superset_spec",
}
# Folders without a face: the vocabulary, and what a device, a command or a process of its own must
# not load as a whole.
OPEN_FOLDERS = {
    *("cube", "local_dp", "planner", "tacit_client"),
    *("proxy.cli", "proxy.cli.draft", "proxy.cli.serving", "proxy.cli.shared"),
    *("proxy.outer_sql", "proxy.protocol", "proxy.shared"),
}
# They name the modules that they need: a command has to load fast, and the auditor shares little.
PICKY = ("proxy.cli", "accountant.auditor")
# Imported past their folder's face: as modules, for an extra alone, or as a name stands for both.
PAST_A_FACE = {
    "accountant.exact.exact_answers",
    "accountant.ledger.stores.durable_file",
    "accountant.ledger.stores.postgres_reader",
    "accountant.ledger.stores.postgres_store",
    "planner.meaning.table",
    "planner.meaning.written",
    "proxy.engine.answers.released",
    "proxy.reporting.charts",
    "synthesis.drawing",
    "synthesis.model",
    "synthesis.privbayes.network",
    "synthesis.strata",
}


def sources(component: str) -> list[Path]:
    return [path for path in sorted((ROOT / component).rglob("*.py")) if "_pb2" not in path.name]


def imported(path: Path) -> Iterator[str]:
    """The top-level packages that a module imports."""
    yield from (name.split(".")[0] for name in imported_modules(path))


@cache
def imported_modules(path: Path) -> tuple[str, ...]:
    """What a module imports, with dots; of ``from a.b import c`` it is ``a.b.c``."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found += (f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(found)


def folders() -> list[str]:
    """Every package and subpackage."""
    found = {path.parent for component in MAY_IMPORT for path in sources(component)}
    return sorted(folder.relative_to(ROOT).as_posix() for folder in found)


def room(folder: str, module: str) -> str | None:
    """The room of a folder that a module with dots lies in, if it lies in that folder."""
    prefix = folder.replace("/", ".") + "."
    return module.removeprefix(prefix).split(".")[0] if module.startswith(prefix) else None


def arrows(folder: str) -> dict[str, set[str]]:
    """The rooms of a folder, and which others of it each imports."""
    found: dict[str, set[str]] = {}
    for path in sources(folder):
        if path.name == "__init__.py":
            continue
        dotted = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        here = room(folder, dotted)
        assert here is not None
        others = {room(folder, module) for module in imported_modules(path)}
        found.setdefault(here, set()).update(one for one in others - {None, here} if one)
    return found


# What a respondent runs is a part of the client as well: one implementation of what privacy
# rests on, in files that need the standard library and each other alone.
RESPONDENT = ("local_dp.respondent", "local_dp.draws", "local_dp.answer_store")
RESPONDS = ROOT / "tacit_client" / "responding.py"


@pytest.mark.parametrize("component", MAY_IMPORT)
def test_a_component_imports_only_what_the_map_allows(component: str) -> None:
    for path in sources(component):
        modules = [
            one
            for one in imported_modules(path)
            if path != RESPONDS or not one.startswith(RESPONDENT)
        ]
        packages = {one.split(".")[0] for one in modules}
        foreign = (packages & MAY_IMPORT.keys()) - {component} - MAY_IMPORT[component]
        assert not foreign, f"{path.relative_to(ROOT)} imports {sorted(foreign)}"


@pytest.mark.parametrize("module", RESPONDENT)
def test_what_a_respondent_runs_needs_the_standard_library_alone(module: str) -> None:
    path = ROOT / (module.replace(".", "/") + ".py")
    others = {one for one in imported_modules(path) if not one.startswith(RESPONDENT)}
    assert {one.split(".")[0] for one in others} <= sys.stdlib_module_names
    assert not set(imported(ROOT / "local_dp" / "__init__.py"))


@pytest.mark.parametrize("folder", FLOORS)
def test_rooms_import_only_from_the_floors_below(folder: str) -> None:
    height = {name: -floor for floor, names in enumerate(FLOORS[folder]) for name in names.split()}
    found = arrows(folder)
    assert found.keys() == height.keys(), "each room has a floor"
    for here, others in found.items():
        for other in others - GENERATED:
            assert height[other] < height[here], f"{folder}/{here} imports {other}"


@pytest.mark.parametrize("folder", folders())
def test_no_import_of_a_folder_runs_in_a_circle(folder: str) -> None:
    try:
        tuple(TopologicalSorter(arrows(folder)).static_order())
    except CycleError as circle:
        pytest.fail(f"{folder}: {' -> '.join(circle.args[1])}")


def test_the_picture_of_the_proxy_stays_small() -> None:
    assert len(arrows("proxy")) <= N_ROOMS_MAX


@pytest.mark.parametrize("library", HOMES)
def test_a_library_is_used_only_at_home(library: str) -> None:
    for component in MAY_IMPORT.keys() - HOMES[library]:
        for path in sources(component):
            assert library not in set(imported(path)), path.relative_to(ROOT)


def test_of_the_proxy_only_what_writes_statements_for_engines_has_trees_of_sql() -> None:
    """There is one reader of SQL that users wrote, the planner; here SQL is only written."""
    users = {
        path.parent.relative_to(ROOT).as_posix()
        for path in sources("proxy")
        if "sqlglot" in set(imported(path))
    }
    assert users == {"proxy/sources/pushdown"}


def test_of_the_proxy_only_counts_of_answers_are_in_sqlite() -> None:
    users = {
        path.parent.relative_to(ROOT).as_posix()
        for path in sources("proxy")
        if "sqlite3" in set(imported(path))
    }
    assert users == {"proxy/collections"}


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
            if path != ROOT / "accountant" / "gate" / "release.py":
                assert not {"measure", "measure_units"} & set(calls), path.relative_to(ROOT)


def test_only_the_gate_releases() -> None:
    users = {
        str(path.relative_to(ROOT))
        for component in MAY_IMPORT
        for path in sources(component)
        if any(name.startswith("accountant.gate.release.") for name in imported_modules(path))
    }
    assert users == {"accountant/gate/gate.py"}


@cache
def modules() -> dict[str, Path]:
    """Every module of the product by its name with dots; of a package, its face."""
    found = {}
    for path in (path for component in MAY_IMPORT for path in sources(component)):
        name = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        found[name.removesuffix(".__init__")] = path
    return found


def is_face(name: str) -> bool:
    return modules()[name].name == "__init__.py"


def folder_of(name: str) -> str:
    return name if is_face(name) else name.rpartition(".")[0]


@cache
def shown_by(face: str) -> dict[str, str]:
    """The names that a face shows, and the module of each."""
    nodes = ast.walk(ast.parse(modules()[face].read_text()))
    return {
        alias.name: node.module
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module in modules()
        for alias in node.names
    }


@cache
def reached(name: str) -> set[str]:
    """The modules that a module imports, those behind a face as well."""
    found: set[str] = set()
    for one in imported_modules(modules()[name]):
        above, _, last = one.rpartition(".")
        behind = shown_by(above).get(last) if above in modules() and is_face(above) else None
        found |= ({one, above} if behind is None else {behind}) & modules().keys()
    return {one for one in found - {name} if not is_face(one)}


def test_a_folder_is_entered_by_its_face() -> None:
    for name, path in modules().items():
        here = folder_of(name)
        for one in imported_modules(path):
            entered = one if one in modules() else one.rpartition(".")[0]
            if entered not in modules() or is_face(entered) or entered in PAST_A_FACE:
                continue
            folder = folder_of(entered)
            is_picky = f"{name}.".startswith(tuple(f"{it}." for it in PICKY))
            is_within = f"{here}.".startswith(f"{folder}.")
            assert is_picky or folder in OPEN_FOLDERS or is_within, (
                f"{name} imports {entered}, and not its folder's face"
            )
    assert len(PAST_A_FACE) < N_PAST_A_FACE_MAX


def test_what_a_face_shows_is_what_others_import() -> None:
    wanted = {
        one
        for name, path in modules().items()
        for one in imported_modules(path)
        if not f"{folder_of(name)}.".startswith(f"{one.rpartition('.')[0]}.")
    }
    for face in filter(is_face, modules()):
        if face in OPEN_FOLDERS:
            continue
        unused = [name for name in shown_by(face) if f"{face}.{name}" not in wanted]
        assert not unused, f"{face} shows {unused}, which nobody imports"


def test_a_folder_has_few_modules() -> None:
    found = Counter(folder_of(name) for name in modules() if not is_face(name))
    assert {name: n for name, n in found.items() if n > N_MODULES_MAX} == {}


def test_short_modules_are_those_that_have_a_reason() -> None:
    found = {
        name
        for name, path in modules().items()
        if not is_face(name) and path.read_text().count("\n") < N_LINES_MIN
    }
    assert found == SHORT


def test_few_modules_are_a_part_of_one_other() -> None:
    importers: dict[str, set[str]] = {}
    for name in modules():
        if not is_face(name):
            for one in reached(name):
                importers.setdefault(one, set()).add(name)
    lonely = sorted(
        name for name, by in importers.items() if len(by) == 1 and folder_of(*by) == folder_of(name)
    )
    assert len(lonely) <= N_LONELY_MAX, lonely


@pytest.mark.parametrize("component", MAY_IMPORT)
def test_modules_open_with_what_they_are_and_stay_readable(component: str) -> None:
    for path in sources(component):
        text = path.read_text()
        assert ast.get_docstring(ast.parse(text)), f"{path.relative_to(ROOT)} has no docstring"
        assert text.count("\n") <= N_LINES_MAX, f"{path.relative_to(ROOT)} is too long"


@pytest.mark.parametrize("component", MAY_IMPORT)
def test_every_package_has_a_charter(component: str) -> None:
    assert (ROOT / component / "README.md").is_file()


def test_arrow_data_becomes_bytes_where_it_is_cleaned() -> None:
    """Else what memory held before leaves behind NULL, in padding and beside slices."""
    writers = set()
    for component in MAY_IMPORT:
        for path in sources(component):
            if not {"pyarrow", "duckdb"} & set(imported(path)):
                continue
            text = path.read_text()
            nodes = list(ast.walk(ast.parse(text)))
            named = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
            named |= {one.rpartition(".")[2] for one in imported_modules(path)}
            called = {name for name in named if WRITES_ARROW.fullmatch(name)}
            if called:
                name = path.relative_to(ROOT).as_posix()
                writers.add(name)
                assert ARROW_WRITERS.get(name, "?") in text, (
                    f"{name} writes Arrow: {sorted(called)}"
                )
    assert writers == ARROW_WRITERS.keys()
