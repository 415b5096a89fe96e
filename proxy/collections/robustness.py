"""How much a test of dependence is worth on noisy counts, of a server's noise and of respondents'.

Before a release for a table that is public or made up, and after it for the release. No data is
read. What is simulated protects nobody, so that the same question has the same answer.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidRequest, InvalidTarget, TooLarge
from local_dp.channels.channel import Floats
from local_dp.channels.choice import best_channel
from local_dp.robustness import (
    N_DRAWS,
    N_PEOPLE_MAX,
    Flip,
    LaplaceNoise,
    RandomisedAnswers,
    TableNoise,
    doubt_of_release,
    flip_probability,
    plausible_statistics,
)
from proxy.collections.design import epsilon_units

N_CELLS_MAX: Final = 256
COUNT_MAX: Final = 10**9
N_RESPONDENTS_MIN: Final = 2  # of a release; shares, rounded, are of about one
LEVEL: Final = 0.05
N_DRAWS_MIN: Final = 1000
N_DRAWN_MAX: Final = 2**24  # counts that are drawn, about: a second for the largest tables
SEED: Final = 0


class NoiseKind(StrEnum):
    """Who adds the noise."""

    CENTRAL = "central"  # a server that holds the rows, to each count
    LOCAL = "local"  # each respondent, to their own answer


@dataclass(frozen=True)
class NoisyTest:
    """A test of dependence, and the epsilon of the noise that its table is to have or has.

    Parameters
    ----------
    table : (n_rows, n_columns) ndarray of float64
    epsilon_units : int
        Of each row: tables are neighbours if one has a row more, and answers if they differ.
    level : float
    n_answers : int, optional
        How many of the respondents were, or will be, asked about this table; all by default.
    """

    table: Floats
    epsilon_units: int
    level: float = LEVEL
    n_answers: int | None = None

    def __post_init__(self) -> None:
        if self.table.ndim != 2 or min(self.table.shape) < 2:  # noqa: PLR2004 - rows and columns
            raise InvalidRequest("A table of counts has at least two rows and two columns.")
        if self.table.size > N_CELLS_MAX:
            raise TooLarge(f"A table of at most {N_CELLS_MAX} counts is simulated.")
        if not (np.abs(self.table) <= COUNT_MAX).all() or not self.table.sum() > 0:
            raise InvalidRequest(f"Counts are at most {COUNT_MAX}, and more than 0 together.")
        if not 0 < self.level < 1:
            raise InvalidTarget(f"The level of a test is above 0 and below 1, not {self.level}.")
        n_people = round(float(self.table.sum()))
        if self.n_answers is not None and not 1 <= self.n_answers <= min(n_people, N_PEOPLE_MAX):
            raise InvalidRequest(
                f"{self.n_answers} of the table's {n_people} respondents cannot have answered.",
                hint="Counts of a collection add up to all of its respondents, of whom some were "
                "asked about these attributes together.",
            )

    @classmethod
    def at(
        cls, table: Floats, epsilon: str, level: float = LEVEL, n_answers: int | None = None
    ) -> "NoisyTest":
        """For an epsilon in decimal digits.

        Raises
        ------
        InvalidRequest, InvalidTarget, TooLarge
        """
        return cls(table, epsilon_units(epsilon), level, n_answers)

    @property
    def epsilon(self) -> float:
        """Of each row."""
        return float(self.epsilon_units / UNITS_PER_EPSILON)

    def flip(self, kind: NoiseKind) -> Flip:
        """How often noise changes the outcome, of a table that is public or made up."""
        if self.table.min() < 0:
            raise InvalidRequest(
                "A count is below 0, which no table without noise has.",
                hint="If it is a release, say with which noise.",
            )
        if (self.table != np.rint(self.table)).any():
            raise InvalidRequest(
                "A count is not whole, as it is in every table without noise.",
                hint="Write how many there are, not shares. If it is a release, say with which "
                "noise.",
            )
        rng = np.random.default_rng(SEED)
        return flip_probability(
            self.table, self.noise(kind), generator=rng, level=self.level, n_draws=self.n_draws
        )

    def doubt(self, kind: NoiseKind) -> Flip:
        """How likely the outcome is wrong, of a table that was released with this noise."""
        self._check_release(kind)
        rng = np.random.default_rng(SEED)
        return doubt_of_release(
            self.table, self.noise(kind), generator=rng, level=self.level, n_draws=self.n_draws
        )

    def statistics(self, kind: NoiseKind) -> Floats:
        """Those of tables that the release may come from."""
        self._check_release(kind)
        rng = np.random.default_rng(SEED)
        return plausible_statistics(
            self.table, self.noise(kind), generator=rng, n_draws=self.n_draws
        )

    def noise(self, kind: NoiseKind) -> TableNoise:
        """The noise of this epsilon."""
        if kind is NoiseKind.CENTRAL:
            return LaplaceNoise(1 / self.epsilon)
        channel = best_channel(self.table.size, self.epsilon_units)
        return RandomisedAnswers(channel, self.n_answers)

    def _check_release(self, kind: NoiseKind) -> None:
        """What respondents answered is of so many; shares would be of one, without any noise."""
        if kind is NoiseKind.LOCAL and self.table.sum() < N_RESPONDENTS_MIN:
            raise InvalidRequest(
                f"The counts of a collection add up to its respondents, of whom there are at "
                f"least {N_RESPONDENTS_MIN}.",
                hint="Write how many there are in each cell, not shares.",
            )

    @property
    def n_draws(self) -> int:
        """How many tables are simulated: fewer large ones."""
        return max(N_DRAWS_MIN, min(N_DRAWS, N_DRAWN_MAX // self.table.size**2))
