"""The best whole number to report for one count, under a user's prior and loss function.

This is post-processing of one answer and costs what the answer costs. The prior and the loss are
the user's own, and have no effect on other users.
"""

from dataclasses import dataclass

from cube.refusals import InvalidRequest, UnsupportedSql
from inference.block_estimates import RowEstimates
from inference.posterior import Posterior
from inference.remap import (
    Floats,
    Loss,
    best_report,
    count_posterior,
    posterior_under,
)
from planner.workload import Wanted, Workload


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """A user's prior belief about a count, and their loss for a wrong report.

    Parameters
    ----------
    prior : (n + 1,) ndarray of float64
        The probability of each count, from 0 on.
    loss : Loss
    """

    prior: Floats
    loss: Loss

    def __post_init__(self) -> None:
        try:
            best_report(count_posterior(0.0, noise_scale=1.0, prior=self.prior), self.loss)
        except ValueError as error:
            raise InvalidRequest(
                f"The prior or the loss is not valid: {error}.",
                hint="Probabilities must sum to 1; a table of losses must be square, with one row "
                "per count.",
            ) from None

    def reported(self, rows: RowEstimates) -> "ReportedCount":
        """The best report for the row that was answered."""
        (estimate,) = rows
        if not isinstance(estimate, Posterior):
            raise TypeError("the answered count is not estimable")
        report = best_report(posterior_under(estimate, self.prior), self.loss)
        return ReportedCount(report.value, report.expected_loss, estimate.value)


@dataclass(frozen=True, slots=True)
class ReportedCount:
    """The best report, its expected loss, and the answer that it is computed from."""

    value: int
    expected_loss: float
    answer: float


def one_count(workload: Workload) -> tuple[str, Wanted]:
    """The table of a statement that asks for exactly one count, and that count.

    Raises
    ------
    UnsupportedSql
        If the statement asks for anything else.
    """
    if len(workload.parts) == 1 and not workload.is_probe:
        (part,) = workload.parts
        if len(part.aggregates) == len(part.answers) == part.n_rows == 1:
            (aggregate,) = part.aggregates
            (block,) = aggregate.blocks
            is_whole = block.query.constant == 0 and block.primitive[1] == 1
            is_whole = is_whole and aggregate.groups_max is None
            if part.answers[0].formula is None and not aggregate.is_constant and is_whole:
                return part.table, Wanted(block, aggregate.target)
    raise UnsupportedSql(
        "The statement does not ask for exactly one count.",
        hint="Write SELECT COUNT(*) FROM .. WHERE .., without GROUP BY.",
    )
