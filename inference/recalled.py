"""The answers of an estimator, cached for dashboards that repeat their queries.

A dropped answer is estimated again. Nothing here knows how, or whether an answer is still the best.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from inference.block_estimates import RowEstimates, n_terms, narrowest

N_ANSWERS_MAX = 4096
N_TERMS_A_ROW = 40  # the memory that every row takes besides its terms, counted in terms


@dataclass(frozen=True, slots=True, eq=False)
class RecalledAnswer:
    """The answer for a block at a confidence.

    Parameters
    ----------
    rows : sequence of (Posterior or NotEstimable)
        One for each row; empty if the block was never estimated.
    is_narrowest : bool
        Whether every way to estimate the rows was tried.
    n_seen : int
        The number of measurements at that time.
    is_apart : bool
        Whether no measurement at that time said anything about the rows, or combinations of them.
    """

    rows: RowEstimates
    is_narrowest: bool
    n_seen: int
    is_apart: bool = False

    def narrowed(
        self,
        rows: RowEstimates,
        confidence: float,
        *,
        is_narrowest: bool,
        n_seen: int,
    ) -> "RecalledAnswer":
        """A new answer: the rows, or those of this one where they are narrower."""
        rows = narrowest(rows, self.rows, confidence) if self.rows else rows
        return RecalledAnswer(rows, is_narrowest=is_narrowest, n_seen=n_seen)

    @property
    def n_terms(self) -> int:
        """The memory that its rows take, counted in terms."""
        return N_TERMS_A_ROW * len(self.rows) + n_terms(self.rows)


NEVER_ASKED = RecalledAnswer((), is_narrowest=False, n_seen=-1)


class RecalledAnswers:
    """The most recently used answers, by what was asked.

    Parameters
    ----------
    n_terms_max : int
        Of all answers together; a term is a place, a row and a coefficient.
    """

    def __init__(self, n_terms_max: int) -> None:
        self._n_terms_max = n_terms_max
        self._answers: OrderedDict[Hashable, RecalledAnswer] = OrderedDict()
        self._n_terms = 0

    def __len__(self) -> int:
        return len(self._answers)

    def copy(self) -> "RecalledAnswers":
        """A copy with the same answers, which changes independently."""
        other = RecalledAnswers(self._n_terms_max)
        other._answers, other._n_terms = self._answers.copy(), self._n_terms
        return other

    def get(self, asked: Hashable) -> RecalledAnswer:
        """The cached answer, or `NEVER_ASKED`."""
        return self._answers.get(asked, NEVER_ASKED)

    def keep(self, asked: Hashable, answer: RecalledAnswer) -> None:
        """Cache an answer as the last used; drop the least recently used beyond the limits."""
        before = self._answers.pop(asked, NEVER_ASKED)
        self._answers[asked] = answer
        if answer is not before:
            self._n_terms += answer.n_terms - before.n_terms
        while len(self) > 1 and (len(self) > N_ANSWERS_MAX or self._n_terms > self._n_terms_max):
            _, forgotten = self._answers.popitem(last=False)
            self._n_terms -= forgotten.n_terms
