"""A test of independence, computed from a part's noisy counts: the part's one result row.

This is post-processing of answers that are paid for or free, and of the law of their noise: from
the history, or as a table that answers by itself says. Nothing here charges, and nothing here draws
privacy noise.
"""

import hashlib
import math
from typing import Final

import numpy as np
import pyarrow as pa

from cube.encoding import fingerprint
from inference.independence.cell_noise import Floats, TableLaw
from inference.independence.chi_square import (
    Decision,
    IndependenceTest,
    Reason,
    independence_test,
    table_from_history,
)
from planner.workload import IndependenceQuestion
from proxy.engine.results import AnsweredAggregate, AnsweredPart

TESTED_SCHEMA: Final = pa.schema(
    [
        pa.field("statistic", pa.float64()),  # null: the cells are too small for a test
        pa.field("p_value", pa.float64(), nullable=False),
        pa.field("degrees_of_freedom", pa.int64(), nullable=False),
        pa.field("decision", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("level", pa.float64(), nullable=False),
        pa.field("replicates", pa.int64(), nullable=False),
    ]
)
DEPENDENT: Final = "dependent"
NOT_REJECTED: Final = "not rejected"
CANNOT_TELL: Final = "cannot tell"


def tested(answered: AnsweredPart, question: IndependenceQuestion) -> pa.Table:
    """The outcome of a test on a part's counts.

    Parameters
    ----------
    answered : AnsweredPart
        The answered part; its one aggregate holds the cells, with the last key varying fastest.
    question : IndependenceQuestion

    Returns
    -------
    pyarrow.Table
        One row of `TESTED_SCHEMA`. It is the same for the same question on the same noisy counts,
        which seed the simulation.
    """
    (cells,) = answered.aggregates
    noisy, law = _table(answered, question)
    outcome = independence_test(
        noisy,
        law,
        generator=_generator(cells, question),
        level=question.level,
        n_replicates=question.n_replicates,
    )
    row = {
        "statistic": None if math.isnan(outcome.statistic) else outcome.statistic,
        "p_value": outcome.p_value,
        "degrees_of_freedom": outcome.degrees_of_freedom,
        "decision": _decision(outcome),
        "reason": outcome.reason.value,
        "level": question.level,
        "replicates": outcome.n_replicates,
    }
    return pa.Table.from_pylist([row], schema=TESTED_SCHEMA)


def _table(answered: AnsweredPart, question: IndependenceQuestion) -> tuple[Floats, TableLaw]:
    """The noisy counts, and how such tables come about."""
    if answered.cells is not None:
        return answered.cells.counts, answered.cells.law
    (cells,) = answered.aggregates
    return table_from_history(cells.posteriors, answered.history, question.shape)


def _decision(outcome: IndependenceTest) -> str:
    """The decision as text; "not rejected" and "not tested" are different outcomes."""
    if outcome.decision is Decision.REJECTED:
        return DEPENDENT
    return CANNOT_TELL if outcome.reason is Reason.SMALL_CELLS else NOT_REJECTED


def _generator(cells: AnsweredAggregate, question: IndependenceQuestion) -> np.random.Generator:
    """A generator seeded by public values: the question and the noisy counts."""
    asked = hashlib.sha256(repr(question).encode())
    for block in cells.aggregate.blocks:
        asked.update(fingerprint(block).encode())
    asked.update(np.array([one.value for one in cells.posteriors]).tobytes())
    return np.random.default_rng(int.from_bytes(asked.digest()))
