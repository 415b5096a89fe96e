"""Statistics (releases that are not rows): checked, priced and written into a charge.

A noisy distance or a choice costs what rows would cost; Gaussian noise has an account of its own
(`terms.py`), and so have counts of units (`ledger/unit_counts.py`). Every decision depends on the
plan, the public schema and the history of charges alone.

Proof: proofs/gate.md, "Statistics"; proofs/gaussian_noise.md; proofs/units.md, "Distinct units".
"""

from collections.abc import Sequence

from accountant.exact.counted_together import check_read
from accountant.exact.exact_answers import answer_bound, statistic_bound
from accountant.ledger.charged import (
    ChargedChoice,
    ChargedDistance,
    ChargedGaussian,
    ChargedStatistic,
    ChargedUnitCount,
)
from accountant.ledger.unit_counts import UnitCounts
from accountant.noise.gaussian import GaussianNoise, sensitivity_of
from accountant.noise.laplace import LatticeNoise
from accountant.noise.lattice import OnLattice
from cube.grid import arrays_of
from cube.measurement import PlannedMeasurement
from cube.query import QueryBlock, counting, shape_of
from cube.refusals import InvalidRequest
from cube.schema import Schema
from cube.statistic import (
    Asked,
    Choice,
    Distance,
    PlannedGaussian,
    PlannedStatistic,
    PlannedUnitCount,
)


def check_fits(block: QueryBlock, schema: Schema) -> None:
    """Raise ValueError unless the block's arrays are over axes of the schema."""
    for axes, numbers in arrays_of([block]):
        if not schema.by_name.keys() >= set(axes) or shape_of(numbers) != schema.sizes(axes):
            raise ValueError(f"a block over {axes} does not fit the schema of {schema.table}")


def check_statistic(asked: Asked, schema: Schema, known: UnitCounts) -> None:
    """Check a statistic before it is charged, on a table with these counts of units.

    Raises
    ------
    ValueError, TooLarge, StalePlan
    InvalidRequest
        If it is a choice, or of units with rows left out, and the table grows.
    """
    if isinstance(asked, PlannedUnitCount):
        if asked.count.only_cut and schema.grows is not None:
            raise InvalidRequest(
                f"Which rows are left out changes as {schema.table} grows.",
                hint="COUNT(DISTINCT ..) without WAS_CUT counts units that are there.",
            )
        check_fits(asked.count.block, schema)
        known.noise_for(asked).lattice_bound(answer_bound(asked.count.block, schema))
        return
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
    check_read(statistic.block, schema)
    if isinstance(asked, PlannedGaussian):
        noise: OnLattice = GaussianNoise.for_rho(asked.rho, sensitivity_of(statistic))
    else:
        noise = LatticeNoise.for_weight(asked.weight)
    noise.lattice_bound(statistic_bound(statistic, schema))


def charged_statistic(asked: Asked, known: UnitCounts) -> ChargedStatistic:
    """A statistic with the noise that is paid for, on a table with these counts of units."""
    if isinstance(asked, PlannedUnitCount):
        return ChargedUnitCount(asked.count, known.noise_for(asked), asked.raised_from)
    if isinstance(asked, PlannedGaussian):
        noise = GaussianNoise.for_rho(asked.rho, sensitivity_of(asked.statistic))
        return ChargedGaussian(asked.statistic, noise)
    if isinstance(asked.statistic, Distance):
        return ChargedDistance(asked.statistic, LatticeNoise.for_weight(asked.weight))
    return ChargedChoice(asked.statistic, asked.weight)


def rows_costing(statistics: Sequence[Asked]) -> list[PlannedMeasurement]:
    """Rows with the same cost for every cell as the distances and choices."""
    return [asked.costing for asked in statistics if isinstance(asked, PlannedStatistic)]


def units_of_counts(statistics: Sequence[Asked], known: UnitCounts) -> int:
    """What counts of units will have cost, with those among some statistics, in units."""
    return known.units + known.added(
        [asked for asked in statistics if isinstance(asked, PlannedUnitCount)]
    )
