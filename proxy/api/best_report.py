"""The best whole number to report for one count, under its user's prior and loss.

Post-processing of one answer: what it costs is what the answer costs. The prior and the loss are
the user's own, and change nothing for anybody else.
"""

from dataclasses import dataclass

from cube.refusals import InvalidRequest, UnsupportedSql
from inference.posterior import Posterior, RowEstimate
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
    """What a user believes of a count, and what missing it costs him.

    Parameters
    ----------
    prior : (n + 1,) ndarray of float64
        The probability of each count from 0.
    loss : Loss
    """

    prior: Floats
    loss: Loss

    def __post_init__(self) -> None:
        try:
            best_report(count_posterior(0.0, noise_scale=1.0, prior=self.prior), self.loss)
        except ValueError as error:
            raise InvalidRequest(
                f"The prior and the loss do not do: {error}.",
                hint="Probabilities sum to 1; a table of losses is square, one row a count.",
            ) from None

    def reported(self, rows: tuple[RowEstimate, ...]) -> "ReportedCount":
        """The best report for the one row that was answered."""
        (estimate,) = rows
        if not isinstance(estimate, Posterior):
            raise TypeError("a count that was answered is estimable")
        report = best_report(posterior_under(estimate, self.prior), self.loss)
        return ReportedCount(report.value, report.expected_loss, estimate.value)


@dataclass(frozen=True, slots=True)
class ReportedCount:
    """The best report, what it is expected to lose, and the answer that it is made from."""

    value: int
    expected_loss: float
    answer: float


def one_count(workload: Workload) -> tuple[str, Wanted]:
    """The table that a statement asks for one count, and the count.

    Raises
    ------
    UnsupportedSql
        If it asks for anything else, or for nothing at all.
    """
    if len(workload.parts) == 1 and not workload.is_probe:
        (part,) = workload.parts
        if len(part.aggregates) == len(part.answers) == part.n_rows == 1:
            (aggregate,) = part.aggregates
            (block,) = aggregate.blocks
            is_whole = block.query.constant == 0 and block.primitive[1] == 1
            if part.answers[0].formula is None and not aggregate.is_constant and is_whole:
                return part.table, Wanted(block, aggregate.target)
    raise UnsupportedSql(
        "The statement does not ask for one count.",
        hint="Say SELECT COUNT(*) FROM .. WHERE .., without groups.",
    )
