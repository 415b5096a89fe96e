"""The memory of an estimator: how much earlier work it keeps, its answers, its earlier histories.

Whatever is dropped is computed again when it is needed: a bound changes how long an answer takes,
never the answer. What is measured is not counted: it is the history itself.

Answers are cached for dashboards that repeat their queries; a dropped answer is estimated again.

Earlier histories are for what was promised before this process began. An estimator combines a
limited number of rows, and rows that are bought later may replace rows that an earlier answer
rested on. An estimator remembers its answers; one that begins with a long history remembers
none, and looks back here: to estimates from the history as it was. What an earlier history says is
still an estimate.

Nothing here knows how rows are estimated, chooses among estimates, or tells whether an answer is
still the best.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from cube.measurement import Measurement
from cube.query import QueryBlock
from inference.block_estimates import RowEstimates, n_terms, narrowest
from inference.history import History

N_BYTES_DEFAULT = 640 * 2**20
N_BYTES_LEAST = 16 * 2**20
BYTES_A_TERM = 32  # of an answer: a place, a row, a coefficient, and what holds them


@dataclass(frozen=True, slots=True)
class EstimatorMemory:
    """The memory for what an estimator keeps, in bytes.

    Three tenths are for workspaces of scopes, as much for those of blocks, a fifth for answers, and
    a fifth for estimators of earlier histories. The one of each that is in use is kept, whatever
    its size.
    """

    n_bytes: int = N_BYTES_DEFAULT

    def __post_init__(self) -> None:
        if self.n_bytes < 1:
            raise ValueError("a memory must have at least one byte")

    @property
    def workspaces(self) -> int:
        """The bytes of all workspaces of a kind."""
        return self.n_bytes * 3 // 10

    @property
    def n_terms(self) -> int:
        """The terms of all answers together."""
        return self.n_bytes // 5 // BYTES_A_TERM

    def of_earlier(self, n_earlier: int) -> "EstimatorMemory":
        """The memory of each of so many estimators of earlier histories."""
        return EstimatorMemory(max(1, self.n_bytes // 5 // n_earlier))


DEFAULT_MEMORY = EstimatorMemory()


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
        The most terms of all answers together; a term is a place, a row and a coefficient.
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


N_KEPT: Final = 8  # histories: each has an estimator with workspaces of its own


class Estimates(Protocol):
    """The operations that earlier histories need of an estimator."""

    def further(self, measurements: Sequence[Measurement]) -> "Estimates":
        """Estimates from the same history with more measurements."""
        ...

    def estimate(self, block: QueryBlock, confidence: float, half_width: float) -> RowEstimates:
        """The posterior of each row of a block."""
        ...


class EarlierHistories:
    """The beginnings of one history, each with an estimator. For one thread.

    Parameters
    ----------
    begun : callable
        Makes an estimator of no measurements. It holds no estimator, which would hold itself so.
    n_opened_with : int, optional
        How many measurements were there at first. Later ones are not looked back to.
    """

    def __init__(
        self,
        begun: Callable[[], Estimates],
        n_opened_with: int | None = None,
    ) -> None:
        self.n_opened_with = n_opened_with
        self._begun = begun
        self._kept: OrderedDict[int, Estimates] = OrderedDict()

    def begin_with(self, n_measurements: int) -> None:
        """Note how many measurements were there at first, unless that was noted before."""
        if self.n_opened_with is None:
            self.n_opened_with = n_measurements

    def estimates(
        self,
        history: History,
        places: Sequence[int | None],
        block: QueryBlock,
        confidence: float,
        half_width: float,
    ) -> Iterator[RowEstimates]:
        """What the history up to each place says, one after the other.

        Parameters
        ----------
        history : History
        places : sequence of int
            The places of measurements; places since which nothing was forgotten are left out.
        block : QueryBlock
        confidence : float
        half_width : float
        """
        for place in dict.fromkeys(places):
            if place is not None and place + 1 < (self.n_opened_with or 0):
                yield self._as_of(history, place).estimate(block, confidence, half_width)

    def _as_of(self, history: History, place: int) -> Estimates:
        known = self._kept.pop(place, None)
        if known is None:
            # From the nearest beginning that is known: of a long history it is most of the way.
            nearest = max((one for one in self._kept if one < place), default=None)
            start = self._begun() if nearest is None else self._kept[nearest]
            first = 0 if nearest is None else nearest + 1
            known = start.further([history[one] for one in range(first, place + 1)])
        self._kept[place] = known
        while len(self._kept) > N_KEPT:
            self._kept.popitem(last=False)
        return known
