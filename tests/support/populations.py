"""Populations whose law is known, and collections of their randomised answers.

Those on which networks of answers are measured: with little, no, strong and only joint dependence,
narrow and wide columns, and columns of UCI Adult.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

import examples.adult
from cube.measurement import UNITS_PER_EPSILON
from local_dp.campaign import Attribute, designed_views, planned_campaign
from proxy.collections.table import CollectedTable
from proxy.synthetic_tables.from_answers import make_of_answers
from proxy.synthetic_tables.models import decoded_model
from proxy.synthetic_tables.request import Method, SynthesisRequest
from synthesis.privbayes.answering import exact_law
from synthesis.privbayes.network import BayesianNetwork
from tests.support.collections_of_answers import survey_joint
from tests.support.respondents import collected

Floats = NDArray[np.float64]

ADULT: Final = ("income", "marital_status", "race", "relationship", "sex", "workclass")
N_CELLS_MAX: Final = 10**6
LETTERS: Final = "abcdefgh"


def independent() -> Floats:
    """Six columns of two to six levels that depend on nothing."""
    shares = np.ones(())
    for own in ((6, 4), (9, 1), (5, 3, 2), (4, 3, 2, 1), (3, 1), (3, 2, 2, 1, 1, 1)):
        shares = np.multiply.outer(shares, np.array(own) / sum(own))
    return shares


def chain(n_columns: int, n_levels: int, followed: float) -> Floats:
    """Each column is as the one before it for this share, and of any level for the others."""
    step = followed * np.eye(n_levels) + (1 - followed) / n_levels
    shares = np.full(n_levels, 1 / n_levels)
    for _ in range(n_columns - 1):
        shares = shares[..., np.newaxis] * step
    return shares


def parity() -> Floats:
    """The third column tells of the first two only together; a fourth depends on nothing."""
    odd = np.indices((2, 2, 2)).sum(axis=0) % 2
    return np.asarray(np.multiply.outer(np.where(odd, 0.1, 0.9) / 4, [0.5, 0.3, 0.2]))


@cache
def adult() -> Floats:
    """Six columns of UCI Adult."""
    with (Path(examples.adult.__file__).parent / "adult.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    codes = [np.unique([row[name] for row in rows], return_inverse=True)[1] for name in ADULT]
    shares = np.zeros([int(one.max()) + 1 for one in codes])
    np.add.at(shares, tuple(codes), 1 / len(rows))
    return shares


LAWS: Final[Mapping[str, Callable[[], Floats]]] = {
    "survey": survey_joint,
    "independent": independent,
    "wide chain": lambda: chain(4, 20, 0.5),
    "chain of bits": lambda: chain(6, 2, 0.4),
    "parity": parity,
    "adult": adult,
}


def asked(law: Floats, width: int, epsilon: int, n: int, seed: int) -> CollectedTable:
    """What so many respondents drawn from a law answer about every pair, or triple, of columns."""
    rng = np.random.default_rng(seed)
    names = LETTERS[: law.ndim]
    attributes = [
        Attribute(name, tuple(range(size))) for name, size in zip(names, law.shape, strict=True)
    ]
    views = (
        designed_views(tuple(names), 2)
        if width == 2
        else [(one,) for one in combinations(names, width)]
    )
    campaign = planned_campaign(
        "survey", attributes, views, epsilon_units=epsilon * UNITS_PER_EPSILON
    )
    codes = np.unravel_index(rng.choice(law.size, n, p=law.ravel()), law.shape)
    rows = dict(zip(names, codes, strict=True))
    return CollectedTable(collected(campaign, rows, rng))


def network_of(table: CollectedTable, degree: int, seed: int) -> BayesianNetwork:
    """The network that a synthetic table of a collection is drawn from."""
    request = SynthesisRequest(
        table="survey",
        epsilon=Fraction(0),
        method=Method.PRIVBAYES,
        n_rows=1,
        seed=seed,
        degree=degree,
    )
    network = decoded_model(make_of_answers(table, request, lambda _step: None).model)
    assert isinstance(network, BayesianNetwork)
    return network


def distance(network: BayesianNetwork, law: Floats) -> float:
    """Total variation of a network's law, of all columns, from the true one."""
    found = exact_law(network, LETTERS[: law.ndim], {}, N_CELLS_MAX)
    assert found is not None
    return float(np.abs(found.shares - law).sum()) / 2


def n_arcs(networks: Sequence[BayesianNetwork]) -> list[int]:
    """How many parents all columns of each network have."""
    return [sum(len(node.parents) for node in one.nodes) for one in networks]
