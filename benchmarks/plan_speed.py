"""How long planning a BI query takes, beyond parsing its text.

Every statement of tests/sql/answered is planned, cold: by a planner that has planned only one other
statement, so that no plan, expression or level is cached. The parse is sqlglot's own, of the same
text by the same dialect, and its median is subtracted each time. A statement whose subqueries are
asked first is planned with values in their place, and they before it: all of that is its time. A
statement's figure is its median over the rounds; the 95th percentile is over statements.
"""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.report import Bar, progress, run, wants_quick
from planner.domain.relations import Columns, public_table
from planner.planner import Planner
from planner.sql.dialect import Tacit
from planner.workload import AskedFirst, GivenAnswers, RequestedTarget, Workload
from proxy.api.columns import arrow_type
from proxy.engine.asked_before import stand_ins
from proxy.engine.system_views import VIEW_SCHEMAS
from proxy.outer_sql.postprocessing import OuterSql
from proxy.sources.public.table import PublicTable
from tests.sql import world
from tests.sql.cases import Case, cases

N_STATEMENTS = 200
N_ROUNDS, N_ROUNDS_QUICK = 9, 3
P95_MS_MAX = 10.0
PUBLIC_SQL = OuterSql()
WARMING = "SELECT COUNT(*) FROM patients WHERE sex || city = 'x'"


def main() -> None:
    """Run the benchmark and print its report."""
    n_rounds = N_ROUNDS_QUICK if wants_quick(__doc__ or "") else N_ROUNDS
    # EXPLAIN PRIVACY is taken off before the parser sees the rest.
    statements = [case for case in cases("answered") if case.sql.startswith(("SELECT", "WITH"))]
    if len(statements) < N_STATEMENTS:
        raise RuntimeError(f"{len(statements)} statements are fewer than {N_STATEMENTS}")
    parse_ms: dict[str, float] = {}
    beyond_ms: dict[str, list[float]] = {}
    gc.disable()  # a collection is the fault of no one statement; one is made between rounds
    for place in range(n_rounds):
        gc.collect()
        for case in statements:
            parse_ms[case.name] = statistics.median(
                milliseconds(partial(Tacit().parse, case.sql)) for _ in range(5)
            )
            spent = planned_ms(case) - parse_ms[case.name]
            beyond_ms.setdefault(case.name, []).append(spent)
        progress(f"round {place + 1} of {n_rounds}")
    typical = {name: statistics.median(of_case) for name, of_case in beyond_ms.items()}
    p95 = float(np.percentile(list(typical.values()), 95))
    figures = {
        "n_statements": len(statements),
        "n_rounds": n_rounds,
        "parse_ms": summary(list(parse_ms.values())),
        "beyond_parse_ms": summary(list(typical.values())),
        "beyond_parse_in_any_round_ms": summary(
            [ms for of_case in beyond_ms.values() for ms in of_case]
        ),
        "slowest_ms": slowest(typical),
    }
    run(figures, [Bar("planning beyond the parse, p95 ms", p95, P95_MS_MAX, p95 <= P95_MS_MAX)])


def planned_ms(case: Case) -> float:
    """How long a planner takes that has seen nothing of this statement."""
    planner = Planner(
        {world.SCHEMA.table: world.SCHEMA},
        {world.SCHEMA.table: world.DEFAULT},
        [table.relation() for table in world.PUBLIC],
        tuple(VIEW_SCHEMAS),
        public_rows,
    )
    planner.plan(WARMING)
    target = RequestedTarget(half_width=case.half_width)
    return milliseconds(lambda: plan_in_rounds(planner, case.sql, target))


def plan_in_rounds(planner: Planner, sql: str, target: RequestedTarget) -> Workload:
    """Plan a statement, and before it the subqueries that are asked first."""
    given: GivenAnswers = ()
    while True:
        try:
            return planner.plan(sql, target, (), given)
        except AskedFirst as first:
            found = plan_in_rounds(planner, first.sql, first.requested)
            keys = [key for part in found.parts for key in part.keys]
            kind = arrow_type(keys[0].sql_type) if keys else pa.float64()
            values = stand_ins(first, found, pa.schema({"answer": kind}))
            given = (*given, (first.sql, values))


def public_rows(sql: str, names: Sequence[str]) -> Columns:
    """What a subquery over public tables shows; run as the engine runs it."""
    known = {public_table(table.name): table.data for table in world.PUBLIC}
    relations = {name: known[name] for name in names}
    return PublicTable("found", None, PUBLIC_SQL.run(sql, relations)).columns()


def milliseconds(work: Callable[[], object]) -> float:
    """How long `work` takes, once."""
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def summary(times_ms: list[float]) -> dict[str, float]:
    """Median, 95th percentile and maximum."""
    return {
        "median": statistics.median(times_ms),
        "p95": float(np.percentile(times_ms, 95)),
        "max": max(times_ms),
    }


def slowest(times_ms: Mapping[str, float], n: int = 5) -> dict[str, float]:
    """The few statements that take longest."""
    return dict(sorted(times_ms.items(), key=lambda item: -item[1])[:n])


if __name__ == "__main__":
    main()
