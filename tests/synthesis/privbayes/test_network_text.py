"""A network that was written is read back, and nothing else is."""

import json
from typing import Any

import numpy as np
import pytest

from cube.query import Partition
from synthesis.privbayes.network import (
    Attribute,
    BayesianNetwork,
    Node,
    Parent,
    draw_rows,
    network_json,
    network_of,
)
from tests.support.networks import GOLDEN

COARSE = BayesianNetwork(
    (
        Attribute(
            "age",
            (Partition(("age",), np.arange(4)), Partition(("age",), np.array([0, 0, 1, 1]))),
        ),
        Attribute.plain("sex", 2),
    ),
    (Node("age", (), 3), Node("sex", (Parent("age", 1),), 2)),
    (np.array([0.1, 0.2, 0.3, 0.4]), np.array([[1 / 3, 2 / 3], [0.7, 0.3]])),
    1234.5,
)


@pytest.mark.parametrize("network", [GOLDEN, COARSE])
def test_a_network_read_back_draws_the_same_rows(network: BayesianNetwork) -> None:
    text = json.dumps(network_json(network), allow_nan=False)
    read = network_of(json.loads(text))
    assert read.nodes == network.nodes
    first, second = (draw_rows(one, np.random.default_rng(1)) for one in (network, read))
    assert (first == second).all()
    assert json.dumps(network_json(read)) == text


@pytest.mark.parametrize("changed", [{"kind": "pairwise"}, {"total": -1}, {"columns": []}])
def test_an_invalid_network_is_not_read(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"kind|rows|at least one"):
        network_of(network_json(COARSE) | changed)
