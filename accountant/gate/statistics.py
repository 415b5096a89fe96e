"""Statistics (releases that are not rows): checked, priced and written into a charge.

A noisy distance or a choice costs what rows would cost; Gaussian noise has an account of its own
(`terms.py`). Every decision depends on the plan, the public schema and the history of
charges alone.

Proof: proofs/gate.md, "Statistics"; proofs/gaussian_noise.md.
"""

from collections.abc import Sequence

from accountant.exact.exact_answers import statistic_bound
from accountant.ledger.charged import (
    ChargedChoice,
    ChargedDistance,
    ChargedGaussian,
    ChargedStatistic,
)
from accountant.noise.gaussian import GaussianNoise, sensitivity_of
from accountant.noise.laplace import LatticeNoise
from accountant.noise.lattice import OnLattice
from cube.block import QueryBlock
from cube.gaussian import Asked, PlannedGaussian
from cube.grid import arrays_of
from cube.measurement import PlannedMeasurement
from cube.query import counting, shape_of
from cube.refusals import InvalidRequest
from cube.schema import Schema
from cube.statistic import Choice, Distance, PlannedStatistic


def check_fits(block: QueryBlock, schema: Schema) -> None:
    """Raise ValueError unless the block's arrays are over axes of the schema."""
    for axes, numbers in arrays_of([block]):
        if not schema.by_name.keys() >= set(axes) or shape_of(numbers) != schema.sizes(axes):
            raise ValueError(f"a block over {axes} does not fit the schema of {schema.table}")


def check_statistic(asked: Asked, schema: Schema) -> None:
    """Check a statistic before it is charged.

    Raises
    ------
    ValueError, TooLarge
    InvalidRequest
        If it is a choice, and the table grows.
    """
    statistic = asked.statistic
    if isinstance(statistic, Choice):
        if schema.grows is not None:
            raise InvalidRequest(
                f"A choice among columns is about every row, and {schema.table} grows.",
                hint="Make the synthetic table with a method that counts pairs of columns.",
            )
        for view in statistic.views:
            check_fits(QueryBlock(counting(), view), schema)
        return
    check_fits(statistic.block, schema)
    if isinstance(asked, PlannedGaussian):
        noise: OnLattice = GaussianNoise.for_rho(asked.rho, sensitivity_of(statistic))
    else:
        noise = LatticeNoise.for_weight(asked.weight)
    noise.lattice_bound(statistic_bound(statistic, schema))


def charged_statistic(asked: Asked) -> ChargedStatistic:
    """A statistic with the noise that is paid for."""
    if isinstance(asked, PlannedGaussian):
        noise = GaussianNoise.for_rho(asked.rho, sensitivity_of(asked.statistic))
        return ChargedGaussian(asked.statistic, noise)
    if isinstance(asked.statistic, Distance):
        return ChargedDistance(asked.statistic, LatticeNoise.for_weight(asked.weight))
    return ChargedChoice(asked.statistic, asked.weight)


def rows_costing(statistics: Sequence[Asked]) -> list[PlannedMeasurement]:
    """Rows with the same cost for every cell as the statistics that are paid for in epsilon."""
    return [asked.costing for asked in statistics if isinstance(asked, PlannedStatistic)]
