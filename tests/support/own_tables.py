"""A table that answers by itself from counts with normal errors: the least that the port needs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from accountant.ledger.limits import Payer
from cube.query import QueryBlock
from cube.refusals import UnsupportedSql
from cube.schema import Schema
from inference.noise_law.law import law_of_noise
from inference.posterior import Posterior
from local_dp.estimates.collection import coefficients_of
from planner.workload import Fallback, IndependenceQuestion, Wanted
from proxy.api.requests import TableInfo
from proxy.tables.self_answering import AS_IT_IS, OwnAnswer, OwnAnswers, OwnCells


class CountedTable:
    """Counts of the cells of one scope, each row with an error of the same deviation."""

    def __init__(
        self, schema: Schema, scope: tuple[str, ...], counts: NDArray[np.float64], deviation: float
    ) -> None:
        self.info = TableInfo(schema, AS_IT_IS, kind="counted", comment="Counted by hand.")
        self.edition = "1"
        self.position = (0, "")
        self.n_answered = 0
        self._scope, self._counts = scope, counts
        self._law = law_of_noise(np.empty(0), gaussian=deviation)

    def foreseen(self, wanted: Sequence[Wanted], fallback: Fallback) -> list[float | None]:
        del fallback
        self._check(wanted)
        return [self._law.half_width(one.target.confidence) for one in wanted]

    def answer(self, wanted: Sequence[Wanted], payer: Payer, fallback: Fallback) -> OwnAnswers:
        del payer, fallback
        self._check(wanted)
        self.n_answered += 1
        return OwnAnswers(tuple(map(self._answer, wanted)), ("Counted by hand.",))

    def cells(self, block: QueryBlock, question: IndependenceQuestion) -> OwnCells:
        del block, question
        raise UnsupportedSql("Not tested.", hint="Ask for counts.")

    def _check(self, wanted: Sequence[Wanted]) -> None:
        for one in wanted:
            if not set(one.block.scope) <= set(self._scope):
                raise UnsupportedSql("Not counted.", hint=f"Counted are {self._scope}.")

    def _answer(self, wanted: Wanted) -> OwnAnswer:
        sizes = {axis.name: axis.size for axis in self.info.schema.axes}
        coefficients, constants = coefficients_of(wanted.block, sizes)
        out = tuple(i for i, name in enumerate(self._scope) if name not in wanted.block.scope)
        values = self._counts.sum(axis=out).ravel() @ coefficients + constants
        return OwnAnswer(tuple(Posterior(v, self._law) for v in values.tolist()), "counted")
