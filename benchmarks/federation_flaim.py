"""FLAIM and AugFLAIM, written anew after the paper and its published code, to compare with.

Maddock, Cormode, Maple, "FLAIM: AIM-based Synthetic Data Generation in the Federated Setting", KDD
2024: all holders' one-way tables; then, for ten rounds, every holder chooses by the exponential
mechanism the pair on which the model is worst for its own rows, and sends it; tables of the same
pair are summed, brought to the number of all rows, and the model is fitted again. AugFLAIM also
measures one-way tables in every round, and subtracts from a score how much a holder's own columns
differ from them.

Where the comparison could favour either, it favours FLAIM: noise is Gaussian under a delta, which
the method `pairwise` here does without; a trusted sum adds it once, whatever the number of holders;
the number of rows is public; all holders take part in all rounds; the sensitivities are those that
it claims; and the model is fitted as ours are, to all pairs that were measured.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from benchmarks.federation_seed import N_BYTES, Holder, Rows, Sent
from synthesis import Column, Sketch, TableEstimate, combined
from synthesis.drawing import draw_rows
from synthesis.model import fit_model

DELTA: Final = 1e-5
N_ROUNDS: Final = 10  # as in the paper's figures
MEASURED_SHARE: Final = 0.9  # of rho, for tables; the rest is for choices
RHO_MAX: Final = 1e4


@dataclass(frozen=True, slots=True)
class Variant:
    """Which of the methods: with the augmented score, and with noise that is added once."""

    augmented: bool = True
    trusted_sum: bool = True


def flaim(
    holders: Sequence[Holder],
    columns: Sequence[Column],
    epsilon: float,
    rng: np.random.Generator,
    variant: Variant,
) -> tuple[Rows, Sent]:
    """Synthetic rows, and what was sent for them."""
    places = range(len(columns))
    n_again = N_ROUNDS - 1 if variant.augmented else 0
    rho = rho_of(epsilon, DELTA)
    n_tables = N_ROUNDS + len(columns) * (1 + n_again)
    deviation = math.sqrt(n_tables / (2 * MEASURED_SHARE * rho))
    choice_epsilon = math.sqrt(8 * (1 - MEASURED_SHARE) * rho / N_ROUNDS)
    estimates = _Estimates(holders, columns, deviation, variant, rng)
    for place in places:
        estimates.measure((place,), holders)
    for turn in range(N_ROUNDS):
        model = estimates.rows()
        chosen: dict[tuple[int, ...], list[Holder]] = {}
        for holder in holders:
            scores = _scores(holder, model, estimates, deviation, augmented=variant.augmented)
            moved = (2 if variant.augmented else 1) / len(holder.rows)
            weighed = np.array(list(scores.values())) * choice_epsilon / (2 * moved)
            best = int(np.argmax(weighed + rng.gumbel(size=weighed.size)))
            chosen.setdefault(list(scores)[best], []).append(holder)
        for scope, own in chosen.items():
            estimates.measure(scope, own)
        if turn < n_again:
            for place in places:
                estimates.measure((place,), holders)
    return estimates.rows(), Sent(N_BYTES * estimates.n_numbers, N_ROUNDS + 1)


class _Estimates:
    """What was measured, each table's estimates joined; and the model of it."""

    def __init__(
        self,
        holders: Sequence[Holder],
        columns: Sequence[Column],
        deviation: float,
        variant: Variant,
        rng: np.random.Generator,
    ) -> None:
        self.n_rows = sum(len(one.rows) for one in holders)
        self.tables: dict[tuple[int, ...], TableEstimate] = {}
        self.n_numbers = 0
        self._columns = tuple(columns)
        self._deviation = deviation
        self._variant = variant
        self._rng = rng

    def measure(self, scope: tuple[int, ...], holders: Sequence[Holder]) -> None:
        """The sum of some holders' tables, brought to the number of all rows."""
        exact = np.add.reduce([one.counts(scope) for one in holders])
        n_noises = 1 if self._variant.trusted_sum else len(holders)
        deviation = self._deviation * math.sqrt(n_noises)
        noisy = exact + self._rng.normal(0.0, deviation, exact.shape)
        times = self.n_rows / max(float(noisy.sum()), 1.0)
        names = tuple(self._columns[place].name for place in scope)
        one = TableEstimate(names, noisy * times, np.array((deviation * times) ** 2))
        known = [self.tables[scope]] if scope in self.tables else []
        self.tables[scope] = combined([*known, one])
        self.n_numbers += exact.size * len(holders)

    def rows(self) -> Rows:
        """Rows of the model of all that was measured."""
        sketch = Sketch.of(self._columns, list(self.tables.values()))
        drawn = draw_rows(fit_model(sketch), self._rng, n_rows=self.n_rows)
        return np.asarray(drawn, dtype=np.int64)


def _scores(
    holder: Holder, model: Rows, estimates: _Estimates, deviation: float, *, augmented: bool
) -> Mapping[tuple[int, ...], float]:
    """How far a holder's pairs are from the model's, less noise, and less how unusual it is."""
    n_own = len(holder.rows)
    drawn = Holder(model, holder.sizes)
    unusual = np.zeros(len(holder.sizes))
    if augmented:
        for place in range(unusual.size):
            all_rows = estimates.tables[(place,)].values / estimates.n_rows
            unusual[place] = np.abs(all_rows - holder.counts((place,)) / n_own).sum()
    found: dict[tuple[int, ...], float] = {}
    for scope in combinations(range(len(holder.sizes)), 2):
        own, modelled = holder.counts(scope) / n_own, drawn.counts(scope) / len(model)
        error = float(np.abs(own - modelled).sum())
        noise = math.sqrt(2 / math.pi) * deviation / n_own * own.size
        found[scope] = error - noise - float(unusual[list(scope)].mean())
    return found


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho of zero-concentrated privacy that an epsilon and a delta allow.

    Notes
    -----
    By ``delta = min over a > 1 of exp((a - 1)(a rho - epsilon)) / (a - 1) (1 - 1 / a)**a`` [1]_.

    References
    ----------
    .. [1] C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy",
       NeurIPS 2020, Proposition 12.
    """

    def excess(log_rho: float) -> float:
        return _log_delta(math.exp(log_rho), epsilon) - math.log(delta)

    return math.exp(float(brentq(excess, math.log(1e-12), math.log(RHO_MAX))))


def _log_delta(rho: float, epsilon: float) -> float:
    def log_of(log_order: float) -> float:
        order = 1 + math.exp(log_order)
        return (
            (order - 1) * (order * rho - epsilon)
            - math.log(order - 1)
            + order * math.log1p(-1 / order)
        )

    return float(minimize_scalar(log_of, bounds=(-12, 25), method="bounded").fun)
