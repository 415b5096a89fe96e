"""The prior and the loss of a request for the best report of a count."""

from typing import Final

import numpy as np

from cube.refusals import InvalidRequest, TooLarge
from inference.remap import (
    Loss,
    LossTable,
    PowerLoss,
    ZeroOneLoss,
)
from proxy.api.best_report import Belief
from proxy.protocol import tacit_pb2

N_POINTS_MAX: Final = 10_000  # of a prior: each is evaluated separately
N_COUNTS_MAX: Final = 1_000_000  # the largest count that a prior may name
N_LOSSES_MAX: Final = 1000  # rows of a table of losses

LOSSES: Final[dict[str, Loss]] = {
    "absolute": PowerLoss(1),
    "squared": PowerLoss(2),
    "zero_one": ZeroOneLoss(),
}
TABLE: Final = "table"


def belief_of(message: tacit_pb2.BestReportRequest) -> Belief:
    """The prior and the loss of a message.

    Raises
    ------
    InvalidRequest, TooLarge
    """
    counts = [point.value for point in message.prior]
    if not counts:
        raise InvalidRequest(
            "The request has no prior.", hint="Give the probability of each count."
        )
    if min(counts) < 0 or len(set(counts)) < len(counts):
        raise InvalidRequest(
            "A prior may name each count only once, and none below 0.", hint="Add up duplicates."
        )
    if len(counts) > N_POINTS_MAX or max(counts) > N_COUNTS_MAX:
        raise TooLarge(
            f"A prior has at most {N_POINTS_MAX} points, none above {N_COUNTS_MAX}.",
            hint="Name fewer counts.",
        )
    prior = np.zeros(max(counts) + 1)
    prior[counts] = [point.probability for point in message.prior]
    return Belief(prior, _loss(message))


def _loss(message: tacit_pb2.BestReportRequest) -> Loss:
    known = LOSSES.get(message.loss)
    if known is not None:
        return known
    if message.loss != TABLE:
        raise InvalidRequest(
            f"There is no loss {message.loss[:40]!a}.",
            hint=f"Losses are {', '.join(LOSSES)}, table.",
        )
    if len(message.loss_table) > N_LOSSES_MAX:
        raise TooLarge(
            f"A table of losses has at most {N_LOSSES_MAX} rows.", hint="Name a loss instead."
        )
    rows = [list(row.losses) for row in message.loss_table]
    if not rows or {len(row) for row in rows} != {len(rows)}:
        raise InvalidRequest(
            "A table of losses must be square, with one row per count.",
            hint="losses[truth][report].",
        )
    try:
        return LossTable(np.array(rows))
    except ValueError as error:
        raise InvalidRequest(
            f"The loss is not valid: {error}.", hint="Losses must be finite."
        ) from None
