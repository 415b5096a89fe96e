"""Every place in the planner that refuses is reached by some case, or stands on a list with why.

Found by reading the planner's own source: a `raise` of a class under `Refused`, or of a function
that returns one.
"""

import ast
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import numpy as np
import pytest

from accountant.noise.lattice_noise import SystemNoise
from cube import refusals
from cube.axis import IntegerAxis
from cube.query import Factor, LinearQuery, QueryBlock, Term
from cube.refusals import Refused
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.batch.plan import plan_batch
from planner.domain.relations import PublicRelation
from planner.domain.scratchpad import N_LOOKUP_VALUES_MAX, Scratchpad
from planner.planner import Planner
from planner.sql.statements import read_file, read_query, read_text
from planner.workload import Wanted
from proxy.api.requests import QueryRequest
from tests.planner import test_fixtures
from tests.planner.meaning.test_refusals import REFUSED as REFUSED_MEANINGS
from tests.planner.meaning.test_refusals import refused as refused_meaning
from tests.planner.sql.test_copying import REFUSED as REFUSED_COPIES
from tests.planner.sql.test_cursors import REFUSED as REFUSED_CURSORS
from tests.planner.sql.test_settings import REFUSED as REFUSED_SETTINGS
from tests.planner.sql.test_stream_statements import MALFORMED_STREAMS, OUT_OF_RANGE
from tests.planner.sql.test_synthetic_statements import MALFORMED
from tests.planner.sql.test_transactions import REFUSED as REFUSED_WORDS
from tests.sql import world
from tests.sql.cases import cases, request
from tests.sql.test_refused import LONG
from tests.support.fakes import KnownTable

PLANNER = Path(__file__).resolve().parents[2] / "planner"
REFUSALS = {
    name
    for name, found in vars(refusals).items()
    if isinstance(found, type) and issubclass(found, Refused)
}

# By module and the start of the call: why nothing here reaches it.
UNREACHED = {
    (
        "lowering/as_of.py",
        "OutsideDomain(",
    ): "on tables that grow, or were replaced: test_as_of.py, test_generations.py",
    ("lowering/as_of.py", "unsupported("): "of data that was replaced: test_generations.py",
    (
        "catalog_sql/rewrite.py",
        "UnsupportedSql('DuckDB cannot run this query of the catalog",
    ): "for grammar that sqlglot may learn",
    (
        "lowering/linear.py",
        "InvalidTarget(f'unit_sum_max is below",
    ): "of units with several rows: test_bounds_of_statements.py",
    ("lowering/linear.py", "UnsupportedSql('rows_per_unit"): "the same",
    ("batch/promise.py", "InvalidTarget"): "a promise fails only where weights end: test_batch.py",
    (
        "measuring/weights.py",
        "practically_no_noise",
    ): "one of two for a target, by what is bought before: test_weights.py",
    ("measuring/weighing.py", "practically_no_noise"): "the largest weight was bought before",
    (
        "domain/relations.py",
        "UnknownName(f'Several private tables",
    ): "of two sources: test_names_apart.py",
    ("lowering/tables.py", "UnknownName(refusal.message"): "the same, with its place in the text",
    ("domain/scratchpad.py", "_too_long(expression)"): "takes five seconds",
    (
        "lowering/linear.py",
        "TooLarge(f'GROUP BY uses {math.prod(sizes)}",
    ): "needs a column of more levels than the fixtures have",
    ("sql/parameters.py", "InvalidSql("): "of values beside the text: test_parameters.py",
    ("sql/parameters.py", "TooLarge("): "the same",
}


Asked = Callable[[], object]
# Files of statements, which are read before any of them is planned.
FILES: list[Asked] = [
    partial(read_file, text)
    for text in ("-" * (2**20 + 1), "SELECT 'open", " ; ; ", "SELECT 1;" * 501)
]

# Statements that are carried out around queries, and so are never planned.
AROUND: list[Asked] = [
    *(
        partial(read_text, text)
        for text in (
            *REFUSED_SETTINGS,
            *REFUSED_WORDS,
            *REFUSED_CURSORS,
            *REFUSED_COPIES,
            *MALFORMED,
            *MALFORMED_STREAMS,
            *(f"CREATE STREAM v {rest}" for rest in OUT_OF_RANGE),
        )
    ),
    partial(read_query, "SET tacit.epsilon = 1"),
    *(partial(refused_meaning, sql) for sql in REFUSED_MEANINGS),
]

DAYS = Schema(
    table="days", axes=(IntegerAxis(name="n", low=0, high=200_000),), n_records_max=10_000
)
EVERY = np.arange(200_001, dtype=np.int64)
TARGET = AccuracyTarget(half_width=10.0, confidence=0.95)
# Alone, either could be had at the largest weight that there is.
NARROW = AccuracyTarget(half_width=0.00074, confidence=0.95)


def _first(n_days: int) -> QueryBlock:
    inside = (n_days > EVERY).astype(np.int64)
    return QueryBlock(LinearQuery((Term(Fraction(1), (Factor(("n",), inside),)),)))


# Statements planned together.
BATCHES: list[Asked] = [
    partial(plan_batch, [Wanted(_first(10), NARROW), Wanted(_first(20), NARROW)], DAYS),
]

# On a column that is wider than any of the fixtures'.
WIDE_PLANNER = Planner({"days": DAYS}, {"days": TARGET})
MANY_SUMS = ", ".join(f"SUM(n % {k})" for k in range(2, 202))
MANY_COUNTS = ", ".join(f"COUNT(*) FILTER (WHERE n > {k})" for k in range(100))
# Many groups beside it.
HOURS = Schema(
    table="hours", axes=(IntegerAxis(name="minute", low=0, high=999), *DAYS.axes), n_records_max=10
)
HOURS_PLANNER = Planner({"hours": HOURS}, {"hours": TARGET})
# A product of five sums of four columns each: 1,024 products of five columns.
COLUMNS = Schema(
    table="columns",
    axes=tuple(IntegerAxis(name=f"c{place}", low=0, high=3) for place in range(20)),
    n_records_max=10,
)
COLUMNS_PLANNER = Planner({"columns": COLUMNS}, {"columns": TARGET})
SUMS_MULTIPLIED = " * ".join(
    f"({' + '.join(f'c{4 * group + member}' for member in range(4))})" for group in range(5)
)
LARGE_PUBLIC = PublicRelation(
    "large", ("k",), ("k",), {"k": ("BIGINT", range(N_LOOKUP_VALUES_MAX + 1))}
)
WIDE: list[Asked] = [
    partial(WIDE_PLANNER.plan, "SELECT MEDIAN(n) FROM days GROUP BY n % 7"),
    partial(HOURS_PLANNER.plan, "SELECT MEDIAN(n) FROM hours GROUP BY minute"),
    partial(WIDE_PLANNER.plan, "SELECT COUNT(DISTINCT n) FROM days"),
    partial(WIDE_PLANNER.plan, f"SELECT {MANY_SUMS} FROM days"),  # noqa: S608 - what is planned here is refused
    partial(WIDE_PLANNER.plan, f"SELECT {MANY_COUNTS} FROM days"),  # noqa: S608 - the same
    partial(COLUMNS_PLANNER.plan, f"SELECT SUM({SUMS_MULTIPLIED}) FROM columns"),  # noqa: S608 - the same
    partial(Scratchpad({}).lookups, LARGE_PUBLIC),
]


class Site(NamedTuple):
    """One `raise`, by its module and lines, and how its call begins."""

    module: str
    first_line: int
    last_line: int
    text: str


def _name(path: Path) -> str:
    return path.relative_to(PLANNER).as_posix()


@cache
def sites() -> tuple[Site, ...]:
    """Every place in the planner that refuses."""
    found = []
    for path in sorted(PLANNER.rglob("*.py")):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and _is_refusal(node.exc):
                text = ast.unparse(node.exc) if node.exc is not None else ""
                found.append(Site(_name(path), node.lineno, node.end_lineno or node.lineno, text))
    return tuple(found)


def _makers() -> set[str]:
    """Functions of the planner that return a refusal for others to raise."""
    functions = [
        node
        for path in PLANNER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.returns is not None
    ]
    return {node.name for node in functions if ast.unparse(node.returns or node) in REFUSALS}


MAKERS = _makers()


def _is_refusal(raised: ast.expr | None) -> bool:
    if not isinstance(raised, ast.Call):
        return False
    called = raised.func
    name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
    return name in REFUSALS | MAKERS


def frames(traceback: TracebackType | None) -> Iterator[tuple[str, int]]:
    """The planner's modules and lines that a refusal came through."""
    while traceback is not None:
        path = Path(traceback.tb_frame.f_code.co_filename)
        if path.is_relative_to(PLANNER):
            yield _name(path), traceback.tb_lineno
        traceback = traceback.tb_next


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, int]]:
    """Lines of the planner that the refused cases, here and in tests/planner, came through."""
    lines: set[tuple[str, int]] = set()
    source = KnownTable(world.SCHEMA, world.positions())
    with world.patients_engine(tmp_path_factory.mktemp("sites"), source, SystemNoise()) as engine:
        for case in cases("refused"):
            with pytest.raises(Refused) as refusal:
                engine.answer(request(case))
            lines.update(frames(refusal.tb))
        for _, sql in LONG.values():
            with pytest.raises(Refused) as refusal:
                engine.answer(QueryRequest(sql=sql))
            lines.update(frames(refusal.tb))
    for fixture in test_fixtures.cases("refused.sql"):
        with pytest.raises(Refused) as refusal:
            test_fixtures.PLANNER.plan(fixture.sql)
        lines.update(frames(refusal.tb))
    for ask in (*FILES, *AROUND, *BATCHES, *WIDE):
        with pytest.raises(Refused) as refusal:
            ask()
        lines.update(frames(refusal.tb))
    return lines


def is_reached(site: Site, reached: set[tuple[str, int]]) -> bool:
    lines = range(site.first_line, site.last_line + 1)
    return any((site.module, line) in reached for line in lines)


def test_every_place_that_refuses_is_reached_or_listed(reached: set[tuple[str, int]]) -> None:
    missed = [
        site
        for site in sites()
        if not is_reached(site, reached)
        and not any(
            site.module == module and site.text.startswith(text) for module, text in UNREACHED
        )
    ]
    assert not missed, "\n".join(f"{s.module}:{s.first_line} {s.text[:150]}" for s in missed)


def test_the_list_of_places_not_reached_has_no_old_entry(reached: set[tuple[str, int]]) -> None:
    for module, text in UNREACHED:
        listed = [site for site in sites() if site.module == module and site.text.startswith(text)]
        assert listed, text
        assert not all(is_reached(site, reached) for site in listed), text


def test_places_that_refuse_are_found() -> None:
    assert len(sites()) >= 40
    assert {"unsupported"} <= MAKERS
