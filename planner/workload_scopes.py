"""The columns that a workload's queries need: what weighs the choice of a synthetic table's tables.

A workload is a text of SELECTs on one private table. Each is planned, and refused as it would be if
it were asked; nothing of it is carried out. Only the columns are kept, not the coefficients.
"""

from itertools import chain
from typing import Final

from cube.pace import checkpoint
from cube.query import Scope
from cube.refusals import InvalidRequest, Refused
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.planner import Planner
from planner.sql.words import TextLimits, worded_statements
from planner.workload import Workload

# Each is planned before the table is begun, while somebody waits.
WORKLOAD: Final = TextLimits(
    what="workload", n_bytes=64 * 1024, n_statements=100, hint="Keep the statements that matter."
)
# Columns do not depend on how accurately a query is to be answered.
ANY_TARGET: Final = AccuracyTarget(half_width=1.0, confidence=0.95)


def workload_scopes(text: str, schema: Schema) -> tuple[Scope, ...]:
    """The columns of every linear query in a text of SELECTs, in order.

    Parameters
    ----------
    text : str
        SELECTs, separated by semicolons.
    schema : Schema
        Of the private table that all of them are on.

    Returns
    -------
    tuple of sorted scopes
        A statement's distinct scopes; those of several statements may repeat. Counts of all
        records have no columns, and are left out.

    Raises
    ------
    Refused
        If a statement could not be asked of the table, with its number in the text.
    """
    planner = Planner({schema.table: schema}, {schema.table: ANY_TARGET})
    statements = worded_statements(text, WORKLOAD)
    if not statements:
        raise InvalidRequest(
            "The workload has no statement.",
            hint="Write SELECTs, separated by semicolons, or leave workload out.",
        )
    scopes: list[Scope] = []
    for number, statement in enumerate(statements, start=1):
        checkpoint()
        workload = _planned(planner, statement.text, number)
        if not workload.parts:
            raise InvalidRequest(
                f"Statement {number} of the workload does not ask {schema.table}.",
                hint=f"Ask SELECT COUNT(*) .. of {schema.table}, or leave it out.",
            )
        scopes += _scopes_of(workload)
    if not scopes:
        raise InvalidRequest(
            "The workload needs no column.",
            hint="Count by some column, or under a condition; or leave workload out.",
        )
    return tuple(scopes)


def _planned(planner: Planner, sql: str, number: int) -> Workload:
    """A statement's plan; a refusal says which statement of the text it is of."""
    try:
        return planner.plan(sql)
    except Refused as refusal:
        message = f"Statement {number} of the workload: {refusal.message}"
        raise type(refusal)(message, hint=refusal.hint) from None


def _scopes_of(workload: Workload) -> list[Scope]:
    """The distinct columns of the linear queries of one statement."""
    aggregates = chain.from_iterable(part.aggregates for part in workload.parts)
    found = {block.scope for aggregate in aggregates for block in aggregate.blocks}
    return sorted(found - {()})
