"""A user's belief about a count: a prior over it, and the loss for a wrong report.

A belief comes with a statement, as `DP_BEST` in SQL and as `BestReport` in the protocol. It is the
user's own: it never comes from private data, and nothing about budgets depends on it. What is
computed from it is in `inference/remap.py`.
"""

from dataclasses import dataclass
from typing import Final

from cube.query import QueryBlock
from inference import CountPrior, Loss, LossTable, PowerLoss, ZeroOneLoss, coefficient_range

LOSSES: Final[dict[str, PowerLoss | ZeroOneLoss]] = {
    "absolute": PowerLoss(1),
    "squared": PowerLoss(2),
    "zero_one": ZeroOneLoss(),
}
POWER: Final = "power"
N_REPORTED_MAX: Final = 2**18  # rows times counts of priors: a few seconds by the slowest law
OF_A_ROW: Final = 16  # what a report takes beside its prior's counts, in counts
N_CHARACTERS_MAX: Final = 10_000  # of the SELECT that gives a prior


@dataclass(frozen=True, slots=True)
class PriorSelect:
    """A SELECT whose answer is the prior.

    Parameters
    ----------
    sql : str
        It reads public tables, and gives counts, or counts and their weights. Or it asks for one
        count of another private table; then the law of its answer is the prior.

    Raises
    ------
    ValueError
        If the text is too long.
    """

    sql: str

    def __post_init__(self) -> None:
        if len(self.sql) > N_CHARACTERS_MAX:
            raise ValueError(f"the SELECT of a prior has more than {N_CHARACTERS_MAX} characters")


@dataclass(frozen=True, slots=True)
class Belief:
    """A prior over a count, and a loss.

    Parameters
    ----------
    prior : CountPrior or PriorSelect
    loss : Loss

    Raises
    ------
    ValueError
        If a table of losses is for other counts than those from 0 to the prior's largest.
    """

    prior: CountPrior | PriorSelect
    loss: Loss

    def __post_init__(self) -> None:
        if isinstance(self.loss, LossTable):
            if isinstance(self.prior, PriorSelect):
                raise ValueError("a table of losses needs a list of counts as the prior")  # noqa: TRY004 - of two types that it may have
            n_losses, n_counts = self.loss.losses.shape[0], self.prior.counts[-1] + 1
            if n_losses != n_counts:
                raise ValueError(f"there are losses for {n_losses} counts, not for {n_counts}")

    @property
    def work(self) -> int:
        """How many counts are weighed for one report; of a SELECT, at least."""
        n_counts = 0 if isinstance(self.prior, PriorSelect) else len(self.prior.counts)
        return n_counts + OF_A_ROW


def loss_named(name: str, power: float | None) -> PowerLoss | ZeroOneLoss:
    """The loss of a name; only the loss ``power`` has a power.

    >>> loss_named("power", 1.5)
    PowerLoss(exponent=1.5)

    Raises
    ------
    ValueError
        If there is no such loss, or the power does not fit it.
    """
    if name == POWER:
        if power is None:
            raise ValueError("the loss power needs a power, as in power => 1.5")
        return PowerLoss(power)
    known = LOSSES.get(name)
    if known is None:
        raise ValueError(f"there is no loss {name[:40]!a}; losses are {', '.join(LOSSES)}, {POWER}")
    if power is not None:
        raise ValueError(f"a power belongs to the loss {POWER}, not to {name}")
    return known


def counts_rows(block: QueryBlock) -> bool:
    """Whether every answer of a block is a count of records, or a sum of such counts."""
    query = block.query
    is_sum = any(factor.bound > 1 for term in query.terms for factor in term.factors)
    is_whole = query.constant == 0 and block.primitive[1] == 1
    return is_whole and not is_sum and coefficient_range(query)[0] >= 0
