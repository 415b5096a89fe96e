"""Frequency oracles of others: the variances that their documents state, and a library that is run.

Stated are the probabilities with which an answer supports its true cell and any other one (Wang,
Blocki, Li and Jha, USENIX Security 2017; subset selection: Ye and Barg, 2018), each at exactly its
epsilon. The library is pure-ldp, which the extra `bench` installs; it has no subset selection, and
of Hadamard response no variance is stated here.
"""

import importlib
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from local_dp.channels.channel import Floats


@dataclass(frozen=True)
class Stated:
    """How often an answer supports its true cell, and any other one.

    Parameters
    ----------
    true, other : float
    """

    true: float
    other: float

    def variance(self, shares: Floats) -> float:
        """Of one answer's part in an estimated share, the mean over cells, for drawn answers."""
        rates = self.other + (self.true - self.other) * shares
        return float(np.mean(rates * (1 - rates))) / (self.true - self.other) ** 2


def stated(n_cells: int, epsilon: float) -> dict[str, Stated]:
    """The oracles that pure-ldp has, too."""
    power = math.exp(epsilon)
    half = math.exp(epsilon / 2)
    n_buckets = round(power) + 1
    return {
        "direct": Stated(power / (power + n_cells - 1), 1 / (power + n_cells - 1)),
        "unary": Stated(half / (half + 1), 1 / (half + 1)),
        "optimised unary": Stated(0.5, 1 / (power + 1)),
        "local hashing": Stated(power / (power + n_buckets - 1), 1 / n_buckets),
    }


def subset_selection(n_cells: int, epsilon: float) -> Stated:
    """With the size of the subset that is best of those beside ``K / (exp(epsilon) + 1)``."""
    power = math.exp(epsilon)
    about = n_cells / (power + 1)
    flat = np.full(n_cells, 1 / n_cells)
    sizes = {max(1, math.floor(about)), max(1, math.ceil(about))}
    return min((_subsets(n_cells, size, power) for size in sizes), key=lambda s: s.variance(flat))


def _subsets(n_cells: int, size: int, power: float) -> Stated:
    true = size * power / (size * power + n_cells - size)
    other = (true * (size - 1) + (1 - true) * size) / (n_cells - 1)
    return Stated(true, other)


Estimate = Callable[[NDArray[np.int64]], Floats]


def library(n_cells: int, epsilon: float) -> dict[str, Estimate]:
    """What pure-ldp makes of the true cells of some respondents: raw estimates of the shares."""
    oracles = importlib.import_module("pure_ldp.frequency_oracles")
    hadamard = oracles.HadamardResponseServer(epsilon, n_cells)
    made = {
        "direct": (
            oracles.DEClient(epsilon, n_cells),
            oracles.DEServer(epsilon, n_cells),
        ),
        "unary": (oracles.UEClient(epsilon, n_cells), oracles.UEServer(epsilon, n_cells)),
        "optimised unary": (
            oracles.UEClient(epsilon, n_cells, use_oue=True),
            oracles.UEServer(epsilon, n_cells, use_oue=True),
        ),
        "local hashing": (
            oracles.LHClient(epsilon, n_cells, use_olh=True),
            oracles.LHServer(epsilon, n_cells, use_olh=True),
        ),
        "hadamard response": (
            oracles.HadamardResponseClient(epsilon, n_cells, hadamard.get_hash_funcs()),
            hadamard,
        ),
    }
    return {name: _estimate(client, server, n_cells) for name, (client, server) in made.items()}


def _estimate(client: Any, server: Any, n_cells: int) -> Estimate:
    def estimate(cells: NDArray[np.int64]) -> Floats:
        server.reset()
        for cell in cells.tolist():
            server.aggregate(client.privatise(cell + 1))  # its cells begin with 1
        every = server.estimate_all(range(1, n_cells + 1), suppress_warnings=True)
        return np.asarray(every, dtype=np.float64) / cells.size

    return estimate


def seed_library(number: int) -> None:
    """Its randomness is that of numpy's and Python's global generators."""
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002 - which it draws from
