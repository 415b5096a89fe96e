"""Ten statements without a target, each as the first of a new table, and all ten in sequence.

What each costs, and the median half-width of its last column beside the answer, over its groups.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from benchmarks.first_tables import TABLES, write_table
from cube.refusals import Refused
from proxy.api.requests import QueryRequest
from proxy.bootstrap import Service, build
from proxy.config.settings import load

TEN: Final = (
    "SELECT COUNT(*) AS v FROM loans",
    "SELECT grade, COUNT(*) AS v FROM loans GROUP BY grade",
    "SELECT DATE_TRUNC('month', issued) AS m, COUNT(*) AS v FROM loans GROUP BY m",
    "SELECT COUNT(DISTINCT member_id) AS v FROM loans",
    "SELECT MEDIAN(loan_amount) AS v FROM loans",
    "SELECT SUM(loan_amount) AS v FROM loans",
    "SELECT AVG(interest_rate) AS v FROM loans",
    "SELECT grade, AVG(interest_rate) AS v FROM loans GROUP BY grade",
    "SELECT DATE_TRUNC('month', issued) AS m, SUM(loan_amount) AS v FROM loans GROUP BY m",
    "SELECT grade, COUNT(*), SUM(loan_amount), AVG(interest_rate) AS v FROM loans GROUP BY grade",
)


@dataclass(frozen=True, slots=True)
class First:
    """What came of a statement.

    Parameters
    ----------
    sql : str
    epsilon : float
    share : float, optional
        The median half-width, of the answer; None if it was refused.
    """

    sql: str
    epsilon: float
    share: float | None


def alone(rng: np.random.Generator, n_rows: int) -> dict[str, object]:
    """Each statement on a ledger of its own, and all on one, for one size of the loans table."""
    with TemporaryDirectory(prefix="tacit-bench-") as name:
        folder = Path(name)
        path = write_table(TABLES[0], folder, rng, n_rows)
        each = []
        for sql in TEN:
            with _new(path) as service:
                each.append(_asked(service, sql))
        with _new(path) as service:
            together = [_asked(service, sql) for sql in TEN]
    return {
        "each": [{"sql": one.sql, "epsilon": one.epsilon, "half_width": one.share} for one in each],
        "in_sequence": {
            "answered": sum(one.share is not None for one in together),
            "epsilon": sum(one.epsilon for one in together),
        },
    }


@contextmanager
def _new(path: Path) -> Iterator[Service]:
    """The table with an empty ledger."""
    for old in path.parent.glob(f"{TABLES[0].name}.ledger*"):
        old.unlink()
    service = build(load(path))
    try:
        yield service
    finally:
        service.close()


def _asked(service: Service, sql: str) -> First:
    before = sum(one.spent for one in service.budgets() if one.table == TABLES[0].name)
    share = None
    try:
        result = service.engine.answer(QueryRequest(sql=sql))
    except Refused:
        result = None
    if result is not None and result.receipt is not None:
        values = np.array(result.data.column("v").to_pylist(), dtype=np.float64)
        (said,) = (one for one in result.receipt.columns if one.name == "v")
        widths = np.maximum(np.array(said.high) - values, values - np.array(said.low))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = float(np.nanmedian(widths / np.abs(values)))
    after = sum(one.spent for one in service.budgets() if one.table == TABLES[0].name)
    return First(sql, float(after - before), share)
