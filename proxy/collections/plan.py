"""Plans for a collection: what is asked together, how precisely, and what that is worth.

The campaign that asks about every pair of attributes, or every larger set: its design.

A plan for a collection: of epsilon, respondents and precision, two determine the third.

How much a test of dependence is worth on noisy counts, of a server's noise and of respondents'.

Before a release for a table that is public or made up, and after it for the release. No data is
read. The simulation's noise protects no one's data, so it has a fixed seed: the same question has
the same answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

import numpy as np

from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidRequest, InvalidTarget, TooLarge
from local_dp.campaign import (
    EPSILON_UNITS_MAX,
    PAIR,
    Attribute,
    Campaign,
    View,
    designed_views,
    planned_campaign,
)
from local_dp.channels import Floats, LocalHashing, RandomisedResponse, UnaryEncoding, best_channel
from local_dp.planning import (
    EPSILON_UNITS_MIN,
    epsilon_units_needed,
    half_width,
    respondents_needed,
)
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
from proxy.api import exact_epsilon

# Of an answer. Below, coins of 24 bits waste much of it, and a million people tell nothing.
EPSILON_MIN: Final = Fraction(1, 10_000)
ANSWER_UNITS_MIN: Final = int(EPSILON_MIN * UNITS_PER_EPSILON)


def epsilon_units(text: str) -> int:
    """What a respondent loses at most, in units of 2**-40, rounded down.

    Raises
    ------
    InvalidTarget
    """
    units = int(exact_epsilon("epsilon", text) * UNITS_PER_EPSILON)
    if not ANSWER_UNITS_MIN <= units <= EPSILON_UNITS_MAX:
        least, most = float(EPSILON_MIN), EPSILON_UNITS_MAX // UNITS_PER_EPSILON
        raise InvalidTarget(
            f"A respondent's epsilon is at least {least} and at most {most}, not {text}."
        )
    return units


def views_of(names: Sequence[str], size: int) -> tuple[View, ...]:
    """The views in which combinations of so many attributes cover every pair of them."""
    if size < PAIR:
        return (tuple((name,) for name in names),)
    if size > len(names):
        raise InvalidRequest(
            f"There are {len(names)} attributes, so no combination of {size}.",
            hint="Name a smaller size; 1 asks about each attribute by itself.",
        )
    return designed_views(names, size)


def designed_campaign(
    name: str, attributes: Sequence[Attribute], *, epsilon: str, size: int, n_answered: int = 1
) -> Campaign:
    """The campaign that asks about combinations of so many attributes.

    Raises
    ------
    InvalidRequest, InvalidTarget
    """
    if size < 1:
        raise InvalidRequest(
            f"A combination has at least one attribute, not {size}.",
            hint="2 asks about every pair of attributes, 1 about each by itself.",
        )
    units = epsilon_units(epsilon)
    if n_answered > 1 and units // n_answered < ANSWER_UNITS_MIN:
        raise InvalidTarget(
            f"An epsilon of {epsilon} for {n_answered} answers is less than "
            f"{float(EPSILON_MIN)} for each.",
            hint="Ask for fewer answers of each respondent, or with a larger epsilon.",
        )
    try:
        views = views_of([one.name for one in attributes], min(size, len(attributes)))
        return planned_campaign(name, attributes, views, epsilon_units=units, n_answered=n_answered)
    except ValueError as error:
        raise InvalidRequest(f"This is not a valid campaign: {error}.") from None


N_GIVEN: Final = 2
N_RESPONDENTS_MAX: Final = 10**11  # more than there are people
CONFIDENCE: Final = 0.95
CHANNELS: Final = {
    RandomisedResponse: "randomised response",
    UnaryEncoding: "unary encoding",
    LocalHashing: "local hashing",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """A campaign, how many answer it, and how precise that is.

    Parameters
    ----------
    share : float, optional
        Of the cell whose precision it is; the least favourable one, if it is left out.
    """

    campaign: Campaign
    n_respondents: int
    confidence: float
    share: float | None = None

    def n_answers(self, place: int) -> int:
        """How many answer a combination, on average and rounded down; at least one."""
        return max(1, int(self.campaign.expected_share(place) * self.n_respondents))

    def half_width(self, place: int) -> float:
        """The half-width of the interval of a cell's share, the widest that there can be.

        Of a cell that has the plan's share, if there is one.
        """
        return half_width(
            self.campaign.combinations[place].channel,
            self.n_answers(place),
            confidence=self.confidence,
            share=self.share,
        )

    def channel_name(self, place: int) -> str:
        """How a combination is answered, in words."""
        return CHANNELS[type(self.campaign.combinations[place].channel)]

    def keep(self, place: int) -> float:
        """How often the truth is told: the true cell, its bucket, or (one half) its bit.

        This is what epsilon becomes. Otherwise a fake is told, which may be the truth as well.
        """
        channel = self.campaign.combinations[place].channel
        return 0.5 if isinstance(channel, UnaryEncoding) else float(channel.keep)

    @property
    def widest(self) -> float:
        """The half-width of the least precise combination."""
        places = range(len(self.campaign.combinations))
        alike = {
            (self.campaign.combinations[place].channel, self.n_answers(place)): place
            for place in places
        }
        return max(map(self.half_width, alike.values()))


def made_plan(  # noqa: PLR0913 - two of three numbers, and how
    attributes: Sequence[Attribute],
    *,
    epsilon: str | None,
    n_respondents: int | None,
    width: float | None,
    confidence: float = CONFIDENCE,
    size: int = PAIR,
    share: float | None = None,
) -> Plan:
    """The plan that two of three numbers determine.

    It holds whatever the shares of cells are, or for cells of a share that is given.

    Raises
    ------
    InvalidRequest, InvalidTarget
    """
    if sum(one is not None for one in (epsilon, n_respondents, width)) != N_GIVEN:
        raise InvalidRequest("Give two of epsilon, respondents and half-width.")
    named = "1" if epsilon is None else epsilon
    campaign = designed_campaign("plan", attributes, epsilon=named, size=size)
    if n_respondents is None and width is not None:
        n_respondents = respondents_needed(campaign, width, confidence=confidence, share=share)
    if n_respondents is None:
        raise AssertionError("two of three were given")
    if not 1 <= n_respondents <= N_RESPONDENTS_MAX:
        raise InvalidTarget(f"A plan is for 1 to {N_RESPONDENTS_MAX} respondents.")
    plan = Plan(campaign, n_respondents, confidence, share)
    if epsilon is not None or width is None:
        return plan
    units = _epsilon_units(plan, width)
    exact = designed_campaign(
        "plan", attributes, epsilon=f"{units / UNITS_PER_EPSILON:.12f}", size=size
    )
    return Plan(exact, n_respondents, confidence, share)


def _epsilon_units(plan: Plan, width: float) -> int:
    """The smallest epsilon at which every combination of a plan has the precision."""
    asked = {
        (plan.campaign.n_cells(one.scope), plan.n_answers(place))
        for place, one in enumerate(plan.campaign.combinations)
    }
    units: int = EPSILON_UNITS_MIN
    before = 0
    while units > before:  # again, as what is enough for one may be more than was for another
        before = units
        for n_cells, n_answers in sorted(asked, reverse=True):  # most cells need most, mostly
            units = epsilon_units_needed(
                n_cells,
                n_answers,
                width,
                confidence=plan.confidence,
                share=plan.share,
                at_least=units,
            )
    return units


N_CELLS_MAX: Final = 256
COUNT_MAX: Final = 10**9
N_RESPONDENTS_MIN: Final = 2  # of a release; shares, rounded, are of about one
LEVEL: Final = 0.05
N_DRAWS_MIN: Final = 1000
N_DRAWN_MAX: Final = 2**24  # counts that are drawn, about: a second for the largest tables
SEED: Final = 0


def stacked_tables(counts: Floats, n_given: int) -> Floats:
    """Counts as a table for each value of a given column.

    Parameters
    ----------
    counts : (n_given * n_rows, n_columns) ndarray of float64
        The tables, one below the other.

    Returns
    -------
    (n_rows, n_columns, n_given) ndarray of float64
        Or (n_rows, n_columns) if nothing is given.

    Raises
    ------
    InvalidRequest

    Examples
    --------
    >>> stacked_tables(np.arange(8.0).reshape(4, 2), 2)[..., 1].tolist()
    [[4.0, 5.0], [6.0, 7.0]]
    """
    if n_given == 1:
        return counts
    if n_given < 1 or len(counts) % n_given:
        raise InvalidRequest(
            f"{len(counts)} rows of counts do not make {n_given} tables of one size.",
            hint="Write one table below the other, one for each value of the given column.",
        )
    return np.moveaxis(counts.reshape(n_given, -1, counts.shape[1]), 0, -1)


class NoiseKind(StrEnum):
    """Who adds the noise."""

    CENTRAL = "central"  # a server that holds the rows, to each count
    LOCAL = "local"  # each respondent, to their own answer


@dataclass(frozen=True)
class NoisyTest:
    """A test of dependence, and the epsilon of the noise that its table is to have or has.

    Parameters
    ----------
    table : (n_rows, n_columns, n_given) ndarray of float64
        A table for each value of a column that is given; or (n_rows, n_columns) without one.
    epsilon_units : int
        Of each row: tables are neighbours if one has a row more, and answers if they differ.
    n_answers : int, optional
        How many of the respondents were, or will be, asked about this table; all by default.
    """

    table: Floats
    epsilon_units: int
    level: float = LEVEL
    n_answers: int | None = None

    def __post_init__(self) -> None:
        if self.table.ndim < 2 or min(self.table.shape[:2]) < 2:  # noqa: PLR2004 - rows and columns
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
