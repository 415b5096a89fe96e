"""An explanation in the forms in which PostgreSQL shows plans: a column "QUERY PLAN".

Clients that ask for these forms read them as they read PostgreSQL's: lines of text, or one text of
JSON with a list of one plan. Our own table has more room, and is what EXPLAIN alone gives.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from planner.sql.statements import ExplainForm, PlanFormat
from proxy.api.requests import Explanation
from proxy.engine.explain import EXPLANATION_SCHEMA

PLAN_SCHEMA: Final = pa.schema([pa.field("QUERY PLAN", pa.string(), nullable=False)])
_NOT_RUN: Final = "EXPLAIN ANALYZE does not run the statement, and charges nothing."


def plan_columns(form: ExplainForm) -> pa.Schema:
    """The columns of an explanation in a form."""
    return EXPLANATION_SCHEMA if form.shown_as is PlanFormat.TABLE else PLAN_SCHEMA


def shown_plan(explanation: Explanation, form: ExplainForm) -> pa.Table:
    """An explanation in a form."""
    if form.shown_as is PlanFormat.TABLE:
        return explanation.data
    if form.shown_as is PlanFormat.JSON:
        lines = [json.dumps([_plan(explanation, form)], indent=2)]
    else:
        lines = list(_lines(explanation, form))
    return pa.Table.from_arrays([pa.array(lines, pa.string())], schema=PLAN_SCHEMA)


def _lines(explanation: Explanation, form: ExplainForm) -> Iterator[str]:
    """A line for the whole statement, and one for what answers each aggregate."""
    budget = explanation.budget
    left = "" if budget is None else f" of {float(budget.left):.6g} left for {budget.table}"
    if budget is not None and budget.renewal is not None:
        left += f"; {budget.left_text}"
    yield f"Answer  (epsilon={float(explanation.epsilon):.6g}{left})"
    for row in _chosen(explanation):
        measured = f", epsilon={row['epsilon']:.6g}, {row['candidate']}" if row["candidate"] else ""
        yield (
            f"  ->  {row['aggregate']}  (rows={row['n_rows']}, source={row['source']}, "
            f"half_width={row['half_width_promised']:.6g}{measured})"
        )
    if form.is_analyzed:
        yield _NOT_RUN


def _plan(explanation: Explanation, form: ExplainForm) -> dict[str, Any]:
    """As PostgreSQL nests plans; costs are epsilons, and the other keys those of our table."""
    inner = [
        {
            "Node Type": "Aggregate",
            "Startup Cost": 0.0,
            "Total Cost": row["epsilon"],
            "Plan Rows": row["n_rows"],
            "Plan Width": 0,
            **row,
        }
        for row in _chosen(explanation)
    ]
    plan = {
        "Node Type": "Result",
        "Startup Cost": 0.0,
        "Total Cost": float(explanation.epsilon),
        "Plan Rows": max((row["Plan Rows"] for row in inner), default=0),
        "Plan Width": 0,
        "Plans": inner,
    }
    budget = explanation.budget
    renewing = {} if budget is None or budget.renewal is None else {"Budget": budget.left_text}
    return {"Plan": plan, **renewing, **({"Note": _NOT_RUN} if form.is_analyzed else {})}


def _chosen(explanation: Explanation) -> list[dict[str, Any]]:
    return [row for row in explanation.data.to_pylist() if row["chosen"]]
