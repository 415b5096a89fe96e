"""What a charge pays for: rows and statistics, each with the noise that it gets.

These are values of an entry of the ledger (entries.py), which check themselves. What they cost is
not here (accountant/cost), nor is their text (entry_json.py). Proof: proofs/gate.md.
"""

from dataclasses import dataclass
from typing import TypeAlias

from accountant.noise import GaussianNoise, LatticeNoise
from cube.measurement import PlannedMeasurement, Precision, Rho, Weight
from cube.query import QueryBlock
from cube.statistic import Choice, Distance, GaussianCounts, GaussianStatistic, OfUnits


@dataclass(frozen=True, slots=True)
class ChargedBlock:
    """Rows that were paid for, and the noise that they get.

    `raised_from` is the place of an earlier measurement of the block. Laplace noise is then refined
    to the weight of `noise`, and the difference of the weights is paid; with Gaussian noise,
    `noise` is that of a further value, whose precision is paid and adds to the earlier one.
    """

    block: QueryBlock
    noise: LatticeNoise | GaussianNoise
    raised_from: int | None = None

    def __post_init__(self) -> None:
        PlannedMeasurement(self.block, Weight(1))  # raises unless the block can be measured
        if self.is_gaussian:
            self.precision  # noqa: B018 - raises unless the noise is that of rows

    @property
    def is_gaussian(self) -> bool:
        """Whether its noise is Gaussian; Laplace otherwise."""
        return isinstance(self.noise, GaussianNoise)

    @property
    def laplace_noise(self) -> LatticeNoise:
        """The noise, of rows with Laplace noise; TypeError for others."""
        if not isinstance(self.noise, LatticeNoise):
            raise TypeError("a charge for rows with Laplace noise needs Laplace noise")
        return self.noise

    @property
    def precision(self) -> Precision:
        """The precision that is paid for, of Gaussian noise; TypeError for another."""
        if not isinstance(self.noise, GaussianNoise) or not isinstance(self.noise.rho, Precision):
            raise TypeError("a charge for rows with Gaussian noise needs a precision")
        return self.noise.rho


@dataclass(frozen=True, slots=True)
class ChargedDistance:
    """A distance that was paid for, and the noise that it gets."""

    distance: Distance
    noise: LatticeNoise

    @property
    def statistic(self) -> Distance:
        """The distance."""
        return self.distance

    @property
    def n_released(self) -> int:
        """One number."""
        return 1

    @property
    def costing(self) -> PlannedMeasurement:
        """Rows with the same cost for every cell as the distance."""
        return self.distance.costing(self.noise.weight)

    def check_released(self, released: int) -> None:
        """Any number of lattice steps may be released."""

    def value_of(self, released: int) -> float:
        """The value of a released number of lattice steps, in records."""
        return released * 2.0**-self.noise.lattice_bits


@dataclass(frozen=True, slots=True)
class ChargedChoice:
    """A choice that was paid for."""

    choice: Choice
    weight: Weight

    @property
    def statistic(self) -> Choice:
        """The choice."""
        return self.choice

    @property
    def n_released(self) -> int:
        """One number."""
        return 1

    @property
    def costing(self) -> PlannedMeasurement:
        """A row with the same cost for every cell as the choice."""
        return self.choice.costing(self.weight)

    def check_released(self, released: int) -> None:
        """Raise ValueError unless a candidate of the choice has this place."""
        if not 0 <= released < len(self.choice.candidates):
            raise ValueError("the chosen candidate does not exist")

    def value_of(self, released: int) -> int:
        """The place of the chosen candidate, which is the released number itself."""
        return released


@dataclass(frozen=True, slots=True)
class ChargedGaussian:
    """A statistic that was paid for in rho, and the Gaussian noise that it gets."""

    statistic: GaussianStatistic
    noise: GaussianNoise

    def __post_init__(self) -> None:
        self.rho  # noqa: B018 - raises unless the noise is that of a statistic

    @property
    def rho(self) -> Rho:
        """The rho that is paid."""
        if not isinstance(self.noise.rho, Rho):
            raise TypeError("a statistic must be paid for in rho, not at a precision")
        return self.noise.rho

    @property
    def n_released(self) -> int:
        """A number for each row of counts; one for a distance."""
        return self.statistic.block.n_rows if isinstance(self.statistic, GaussianCounts) else 1

    def check_released(self, released: int) -> None:
        """Any number of lattice steps may be released."""

    def value_of(self, released: int) -> float:
        """The value of a released number of lattice steps, in the unit of the rows."""
        return released * 2.0**-self.noise.lattice_bits


@dataclass(frozen=True, slots=True)
class ChargedUnitCount:
    """A statistic of units that was paid for, and the noise that its numbers get.

    `raised_from` is the place of an earlier one of the same groups and bounds (`unit_counts.py`),
    whose noise is then refined to the weight of `noise`; the difference of the weights is paid.
    """

    count: OfUnits
    noise: LatticeNoise
    raised_from: int | None = None

    @property
    def n_released(self) -> int:
        """A number for each group, or for each range."""
        return self.count.numbers.n_rows

    @property
    def statistic(self) -> OfUnits:
        """The count."""
        return self.count

    @property
    def rows(self) -> ChargedBlock:
        """The same numbers as rows: what their noise and their raises follow from."""
        return ChargedBlock(self.count.numbers, self.noise, self.raised_from)

    def check_released(self, released: int) -> None:
        """Any number of lattice steps may be released."""

    def value_of(self, released: int) -> float:
        """The value of a released number of lattice steps, in units."""
        return released * 2.0**-self.noise.lattice_bits


ChargedStatistic: TypeAlias = ChargedDistance | ChargedChoice | ChargedGaussian | ChargedUnitCount
