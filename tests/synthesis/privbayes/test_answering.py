"""Answers of a network: published numbers, the joint law by its definition, and simulation."""

from itertools import combinations

import numpy as np
import pytest

from cube.query import Partition
from synthesis.privbayes.answering import exact_law, law_given, weighted_law
from synthesis.privbayes.network import Attribute, BayesianNetwork, Node, Parent
from tests.support.networks import GOLDEN, ONE, ZERO, joint

RNG_SEED = 7
N_ROWS = 200_000


def share(wanted: dict[str, int], given: dict[str, int]) -> float:
    law = exact_law(GOLDEN, list(wanted), given)
    assert law is not None
    assert law.shares.sum() == pytest.approx(1)
    return float(law.shares[tuple(wanted.values())])


@pytest.mark.parametrize(
    ("wanted", "given", "expected"),
    [
        ({"D": ONE}, {}, 0.3142),
        ({"B": ONE}, {}, 0.74),
        ({"A": ZERO, "C": ONE}, {}, 0.02),
        ({"A": ONE, "B": ZERO, "C": ONE, "D": ZERO}, {}, 0.0896),
        ({"B": ZERO}, {"C": ONE}, 0.210345),
        ({"D": ZERO}, {"A": ZERO, "C": ONE}, 0.75),
        ({"D": ZERO}, {"B": ONE}, 0.776216),
        ({"D": ONE}, {"A": ZERO, "B": ONE}, 0.12),
    ],
)
def test_shares_are_those_of_the_textbook(
    wanted: dict[str, int], given: dict[str, int], expected: float
) -> None:
    assert share(wanted, given) == pytest.approx(expected, abs=5e-7)


def test_every_row_weighs_what_is_given_by_its_parents() -> None:
    """Each weighs 0.2 * 0.5, whatever else is drawn: all rows count in full."""
    law = weighted_law(GOLDEN, ["D"], {"A": ZERO, "B": ONE}, np.random.default_rng(1), N_ROWS)
    assert law.n_effective == pytest.approx(N_ROWS)
    assert law.shares[ONE] == pytest.approx(0.12, abs=4 * (0.12 * 0.88 / N_ROWS) ** 0.5)


def made_up(rng: np.random.Generator) -> BayesianNetwork:
    """Six columns, up to three parents each, some seen at a coarser level."""
    sizes = [2, 4, 3, 4, 2, 3]
    attributes = []
    for place, size in enumerate(sizes):
        fine = Partition((f"c{place}",), np.arange(size))
        coarse = (Partition((f"c{place}",), np.arange(size) // 2),) if size == 4 else ()
        attributes.append(Attribute(f"c{place}", (fine, *coarse)))
    nodes: list[Node] = []
    laws = []
    for place in (int(one) for one in rng.permutation(len(sizes))):
        among = [attributes[int(node.child[1:])] for node in nodes]
        n_parents = int(rng.integers(0, min(3, len(among)) + 1))
        chosen = [among[int(one)] for one in rng.choice(len(among), n_parents, replace=False)]
        parents = tuple(Parent(one.name, int(rng.integers(len(one.views)))) for one in chosen)
        shape = [one.views[by.level].n_groups for one, by in zip(chosen, parents, strict=True)]
        nodes.append(Node(f"c{place}", parents))
        laws.append(rng.dirichlet(np.ones(sizes[place]), shape or None))
    return BayesianNetwork(tuple(attributes), tuple(nodes), tuple(laws), 100.0)


@pytest.mark.parametrize("seed", range(12))
def test_answers_are_those_of_the_joint_law(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = made_up(rng)
    shares = joint(network)
    names = [one.name for one in network.attributes]
    assert shares.sum() == pytest.approx(1)
    for wanted in [("c1",), ("c3", "c0"), ("c5", "c2", "c1")]:
        given = {name: 0 for name in ("c4", "c2") if name not in wanted}
        conditioned = shares[tuple(given.get(name, slice(None)) for name in names)]
        free = [name for name in names if name not in given]
        kept = [free.index(name) for name in wanted]
        others = tuple(axis for axis in range(len(free)) if axis not in kept)
        expected = conditioned.sum(axis=others).transpose(np.argsort(np.argsort(kept)))
        law = law_given(network, wanted, given, rng)
        assert law.n_effective is None
        assert law.shares == pytest.approx(expected / expected.sum())
        simulated = weighted_law(network, wanted, given, rng, N_ROWS)
        assert simulated.n_effective is not None
        assert np.abs(simulated.shares - law.shares).max() < 2.5 / simulated.n_effective**0.5


def test_a_dense_network_is_simulated() -> None:
    assert exact_law(GOLDEN, ["A", "D"], {}, n_cells_max=7) is None
    assert exact_law(GOLDEN, ["D"], {}, n_cells_max=7) is None, "a law of three columns has 8 cells"
    assert exact_law(GOLDEN, ["A", "B", "C"], {}, n_cells_max=4) is None
    assert exact_law(GOLDEN, ["B"], {}, n_cells_max=4) is not None


def test_values_of_probability_zero_have_no_law() -> None:
    attributes = (Attribute.plain("a", 2), Attribute.plain("b", 2))
    nodes = (Node("a"), Node("b", (Parent("a"),)))
    never = BayesianNetwork(attributes, nodes, (np.array([1.0, 0.0]), np.eye(2)), 1.0)
    rng = np.random.default_rng(RNG_SEED)
    for law in (law_given, weighted_law):
        with pytest.raises(ValueError, match="probability 0"):
            law(never, ["a"], {"b": 1}, rng)


@pytest.mark.parametrize(
    ("columns", "given"), [([], {}), (["A", "A"], {}), (["A"], {"A": 0}), (["A"], {"B": 2})]
)
def test_invalid_questions_are_refused(columns: list[str], given: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"distinct|no class"):
        law_given(GOLDEN, columns, given, np.random.default_rng(RNG_SEED))


def test_independent_columns_are_as_far_off_as_published() -> None:
    """The yardstick of the golden network: 0.0974 over pairs, 0.2420 over all four."""
    shares = joint(GOLDEN)
    margins = [shares.sum(axis=tuple(set(range(4)) - {axis})) for axis in range(4)]
    distances = []
    for first, second in combinations(range(4), 2):
        pair = shares.sum(axis=tuple(set(range(4)) - {first, second}))
        distances.append(np.abs(pair - np.outer(margins[first], margins[second])).sum() / 2)
    assert np.mean(distances) == pytest.approx(0.0974, abs=5e-5)
    product = np.einsum("i,j,k,l", *margins)
    assert np.abs(shares - product).sum() / 2 == pytest.approx(0.2420, abs=5e-5)
