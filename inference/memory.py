"""How much an estimator keeps of its earlier work.

Whatever is dropped is computed again when it is needed: a bound changes how long an answer takes,
never the answer. What is measured is not counted: it is the history itself.
"""

from dataclasses import dataclass

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
            raise ValueError("no memory")

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
