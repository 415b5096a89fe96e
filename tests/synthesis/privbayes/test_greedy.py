"""The greedy network from tables that are there: trees, orders, bounds, laws, what is no parent."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

from cube.query import Scope
from synthesis.networks.score import mutual_information
from synthesis.privbayes.answering import law_given
from synthesis.privbayes.greedy import FALSE_ODDS, greedy_network, with_first_laws_of_one
from synthesis.privbayes.network import (
    Attribute,
    BayesianNetwork,
    Node,
    Parent,
    fitted_network,
    nearest_counts,
)
from synthesis.tables import Floats
from tests.support.survey_network import NAMES, SURVEY, columns, joint

ATTRIBUTES = [Attribute.plain(one.name, one.size) for one in columns()]
N_ROWS = 1000.0


class ExactTables:
    """Margins of a joint law, of every set of so many columns or of some."""

    def __init__(self, law: Floats, width: int, scopes: Sequence[Scope] | None = None) -> None:
        self._law = law
        self.scopes = scopes or [tuple(sorted(one)) for one in combinations(NAMES, width)]
        self.asked: list[tuple[str, Scope]] = []
        self.odds = 0.0

    def worth(self, child: str, parents: Scope, odds: float = 1.0) -> float:
        self.odds = odds
        self.asked.append((child, parents))
        shares = self.counts([child, *parents]) / N_ROWS
        return float(mutual_information(shares[np.newaxis], 0)[0])

    def counts(self, names: Sequence[str]) -> Floats:
        assert any(set(names) <= set(scope) for scope in self.scopes)
        kept = [NAMES.index(name) for name in names]
        summed = self._law.sum(axis=tuple(i for i in range(self._law.ndim) if i not in kept))
        return N_ROWS * np.transpose(summed, [sorted(kept).index(place) for place in kept])


def learned(tables: ExactTables, degree: int, seed: int = 0) -> BayesianNetwork:
    return greedy_network(ATTRIBUTES, tables, np.random.default_rng(seed), degree=degree)


def distance(network: BayesianNetwork) -> float:
    """Total variation of the network's law from that of the population."""
    law = law_given(network, NAMES, {}, np.random.default_rng(0))
    return float(np.abs(law.shares - joint()).sum()) / 2


@pytest.mark.parametrize("seed", range(6))
def test_with_one_parent_it_is_the_spanning_tree_of_most_information(seed: int) -> None:
    """Against all spanning trees; six columns have 1296 of them, told by Pruefer's sequences."""
    tables = ExactTables(joint(), 2)
    network = learned(tables, 1, seed)
    arcs = {frozenset((n.child, n.parents[0].column)) for n in network.nodes if n.parents}
    weight = {frozenset(pair): tables.worth(pair[0], (pair[1],)) for pair in combinations(NAMES, 2)}
    most = max(
        sum(weight[arc] for arc in tree_of(np.base_repr(code, 6).zfill(4))) for code in range(6**4)
    )
    assert len(arcs) == 5
    assert sum(weight[arc] for arc in arcs) == pytest.approx(most)


def tree_of(sequence: str) -> list[frozenset[str]]:
    """The tree that a Pruefer sequence stands for."""
    left = [int(one) for one in sequence]
    degree = [1 + left.count(place) for place in range(6)]
    arcs = []
    for place in left:
        leaf = degree.index(1)
        arcs.append(frozenset((NAMES[leaf], NAMES[place])))
        degree[leaf] -= 1
        degree[place] -= 1
    arcs.append(frozenset(NAMES[place] for place in range(6) if degree[place] == 1))
    return arcs


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_parents_come_before_their_children_and_are_not_too_many(degree: int) -> None:
    network = learned(ExactTables(joint(), 4), degree)
    before: set[str] = set()
    for place, node in enumerate(network.nodes):
        assert {one.column for one in node.parents} <= before
        assert len(node.parents) <= min(degree, place)
        before.add(node.child)
    assert before == set(NAMES)
    assert all(np.allclose(law.sum(axis=-1), 1) for law in network.conditionals)


def test_each_set_of_columns_is_weighed_once_and_shares_the_odds() -> None:
    """Of six columns, all sets of two, three and four: 15, 20 and 15, the last one as the child."""
    tables = ExactTables(joint(), 4)
    learned(tables, 3)
    weighed = [frozenset((child, *parents)) for child, parents in tables.asked]
    assert {len(one) for one in weighed} == {2, 3, 4}
    assert set(weighed) == {
        frozenset(one) for size in (2, 3, 4) for one in combinations(NAMES, size)
    }
    assert len(tables.asked) == len(set(tables.asked))
    assert tables.odds == pytest.approx(FALSE_ODDS / 50)
    tables = ExactTables(joint(), 0, [("A", "E", "S"), ("A", "E"), ("E", "O"), ("R", "T")])
    learned(tables, 1)  # of two columns: three in the first table, and two in the others
    assert tables.odds == pytest.approx(FALSE_ODDS / 5)


def test_exact_tables_of_as_many_columns_as_arcs_meet_in_give_the_law_back() -> None:
    """Every column of the Survey network has two parents at most; three are enough in any order.

    Which arcs are found depends on the column that comes first, and the law is not always exact.
    """
    found = [distance(learned(ExactTables(joint(), 4), 3, seed)) for seed in range(4)]
    assert max(found) < 0.01
    assert max(found) < distance(learned(ExactTables(joint(), 2), 1)) / 2
    assert max(len(SURVEY.parents(name)) for name in NAMES) == 2


def test_tables_of_different_size_give_sets_of_parents_of_different_size() -> None:
    scopes = [("A", "E", "S"), ("E", "O"), ("E", "R"), ("O", "T")]
    network = learned(ExactTables(joint(), 0, scopes), 3)
    of_child = {n.child: {one.column for one in n.parents} for n in network.nodes}
    for child, parents in of_child.items():
        assert any({child, *parents} <= set(scope) for scope in scopes)
    assert sum(map(len, of_child.values())) == 6  # a tree's five, and one in the table of three


def test_columns_that_depend_on_nothing_have_no_parents() -> None:
    law = np.ones(joint().shape)
    for axis in range(law.ndim):
        shape = [-1 if place == axis else 1 for place in range(law.ndim)]
        law = law * joint().sum(axis=tuple(i for i in range(law.ndim) if i != axis)).reshape(shape)

    class Chance(ExactTables):
        def worth(self, child: str, parents: Scope, odds: float = 1.0) -> float:
            return super().worth(child, parents, odds) - 1e-6

    network = greedy_network(ATTRIBUTES, Chance(law, 3), np.random.default_rng(1), degree=2)
    assert not any(node.parents for node in network.nodes)
    assert network.total == pytest.approx(N_ROWS)


def test_first_columns_that_are_each_others_parents_have_the_law_of_one_table() -> None:
    """The network's law of three columns is the table, made non-negative, that the third has.

    A fourth that is in no such table, and a root that is not among the three, keep their own.
    """
    rng = np.random.default_rng(7)
    names = ("A", "E", "R", "S")
    attributes = [
        Attribute.plain(name, size) for name, size in zip(names, (3, 2, 4, 2), strict=True)
    ]
    parents = {"S": (), "A": (), "E": ("A",), "R": ("E", "A")}
    nodes = [Node(name, tuple(map(Parent, own))) for name, own in parents.items()]
    noisy = rng.normal(20.0, 25.0, size=(3, 2, 4))
    noisy[0, 0, :2] = -30.0, 90.0
    noisy *= N_ROWS / noisy.sum()
    alone = np.array([300.0, 700.0])
    tables = [alone, noisy.sum(axis=(1, 2)), noisy.sum(axis=2).T, noisy.transpose(2, 1, 0)]
    network = fitted_network(attributes, nodes, with_first_laws_of_one(nodes, tables))
    law = law_given(network, ("A", "E", "R"), {}, rng).shares
    assert noisy.min() < 0
    assert law == pytest.approx(nearest_counts(noisy, N_ROWS) / N_ROWS, abs=1e-9)
    assert law_given(network, ("S",), {}, rng).shares == pytest.approx([0.3, 0.7])
    by_themselves = law_given(fitted_network(attributes, nodes, tables), ("A", "E", "R"), {}, rng)
    assert np.abs(by_themselves.shares - law).sum() > 0.01  # teeth: this is what it was before


def test_what_no_network_can_be_made_of_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        learned(ExactTables(joint(), 2), -1)
    with pytest.raises(ValueError, match="distinct"):
        greedy_network([], ExactTables(joint(), 2), np.random.default_rng(0), degree=1)
