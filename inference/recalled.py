"""The answers of an estimator, remembered for dashboards that ask again.

What is forgotten is estimated again. Nothing here knows how, nor whether an answer still is best.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from inference.posterior import Posterior, RowEstimate

N_ANSWERS_MAX = 4096
N_TERMS_MAX = 2**22  # of all answers together: 100 MB, at a place, a row and a coefficient each
N_TERMS_A_ROW = 40  # that a row takes the room of, however few it has


@dataclass(frozen=True, slots=True, eq=False)
class RecalledAnswer:
    """What was found for a block at a confidence.

    Parameters
    ----------
    rows : tuple of (Posterior or NotEstimable)
        One a row; none for what was never asked.
    is_narrowest : bool
        Whether every way to estimate them was tried.
    n_seen : int
        The number of measurements that there were.
    is_apart : bool
        Whether nothing measured by then said anything of the rows, nor of all of them together.
    """

    rows: tuple[RowEstimate, ...]
    is_narrowest: bool
    n_seen: int
    is_apart: bool = False

    @property
    def n_terms(self) -> int:
        """How many noises its rows name, and what they take beside."""
        found = (row.terms.place.size for row in self.rows if isinstance(row, Posterior))
        return N_TERMS_A_ROW * len(self.rows) + sum(found)


NEVER_ASKED = RecalledAnswer((), is_narrowest=False, n_seen=-1)


class RecalledAnswers:
    """Answers by what was asked, the last used of them."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, RecalledAnswer] = OrderedDict()
        self._n_terms = 0

    def __len__(self) -> int:
        return len(self._answers)

    def copy(self) -> "RecalledAnswers":
        """Equal answers, remembered apart."""
        other = RecalledAnswers()
        other._answers, other._n_terms = self._answers.copy(), self._n_terms
        return other

    def get(self, asked: Hashable) -> RecalledAnswer:
        """What is remembered, or `NEVER_ASKED`."""
        return self._answers.get(asked, NEVER_ASKED)

    def keep(self, asked: Hashable, answer: RecalledAnswer) -> None:
        """Remember an answer as the last used, and forget the first until the limits are kept."""
        before = self._answers.pop(asked, NEVER_ASKED)
        self._answers[asked] = answer
        if answer is not before:
            self._n_terms += answer.n_terms - before.n_terms
        while len(self) > 1 and (len(self) > N_ANSWERS_MAX or self._n_terms > N_TERMS_MAX):
            _, forgotten = self._answers.popitem(last=False)
            self._n_terms -= forgotten.n_terms
