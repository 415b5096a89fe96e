"""Networks of texts: their graphs, their laws, and the tables of their pairs of columns."""

import itertools
import json

import numpy as np
import pytest

from synthesis.networks.comparison import total_variation
from synthesis.networks.graph import Dag
from synthesis.published import (
    N_COLUMNS_MAX,
    NamedNetwork,
    PairOfTables,
    network_in,
    pairs_of_tables,
)
from synthesis.tables import Floats
from tests.support import survey_network
from tests.support.survey_network import NAMES, SURVEY, survey_bif

SIZES = dict(zip(NAMES, survey_network.joint().shape, strict=True))
LEVELS = {name: tuple(f"{name}{place}" for place in range(size)) for name, size in SIZES.items()}


def compared(one: NamedNetwork, other: NamedNetwork) -> list[PairOfTables]:
    found = pairs_of_tables(one, other)
    assert not isinstance(found, str)
    return found


def margin(names: tuple[str, str]) -> Floats:
    others = tuple(axis for axis, name in enumerate(NAMES) if name not in names)
    return np.asarray(survey_network.joint().sum(axis=others))


@pytest.mark.parametrize(
    "text",
    [
        "A -> E\nS -> E  # a collider\nE -> O\nE -> R\nO -> T\n\nR -> T\n",
        'A,E\n"S","E"\nE,O\nE,R\nO,T\nR,T',
        "[A][S][E|A:S][O|E][R|E][T|O:R]",
        " [A] [S]\n[E | A : S][O|E]\n[R|E][T|O:R]\n",
    ],
)
def test_a_graph_is_read_from_arcs_and_from_a_model_string(text: str) -> None:
    found = network_in(text, ".txt")
    assert set(found.dag.columns) == set(NAMES)
    assert found.dag.arcs == SURVEY.arcs
    assert found.model is None


def test_a_column_without_an_arc_has_a_line_of_its_own() -> None:
    assert network_in("a -> b\nc", ".txt").dag == Dag(("a", "b", "c"), frozenset({("a", "b")}))


def test_a_published_network_has_the_tables_of_its_joint_law() -> None:
    """Beside the sums of the whole joint law, which is written down in another way."""
    survey = network_in(survey_bif(), ".bif")
    assert survey.dag == SURVEY
    for pair in compared(survey, survey):
        np.testing.assert_allclose(pair.one, margin(pair.columns), atol=1e-12)
        np.testing.assert_array_equal(pair.one, pair.other)


def test_levels_are_matched_by_name() -> None:
    """The same network with the levels of A in another order has the same tables."""
    survey, turned = network_in(survey_bif(), ".bif"), survey_bif()
    turned = turned.replace("{ A0, A1, A2 }", "{ A2, A0, A1 }")
    turned = turned.replace("table 0.3, 0.5, 0.2;", "table 0.2, 0.3, 0.5;")
    other = network_in(turned, ".bif")
    assert other.levels["A"] == ("A2", "A0", "A1")
    for pair in compared(survey, other):
        np.testing.assert_allclose(pair.one, pair.other, atol=1e-12)
    # By place alone, young people would be compared with old ones.
    assert total_variation(np.array([0.3, 0.5, 0.2]), np.array([0.2, 0.3, 0.5])) > 0.2


def test_a_level_that_one_network_has_not_has_no_share() -> None:
    one = network_in(json.dumps(encoded(("x", "y"), [0.5, 0.5])), ".json")
    other = network_in(json.dumps(encoded(("y", "z"), [0.5, 0.5])), ".json")
    [pair] = compared(one, other)
    assert pair.one.shape == (3, 1)
    assert total_variation(pair.one, pair.other) == pytest.approx(0.5)
    strange = network_in(json.dumps(encoded(("v", "w"), [0.5, 0.5])), ".json")
    assert pairs_of_tables(one, strange) == "The two networks have no level of a in common."


def test_networks_without_laws_or_too_dense_have_no_tables() -> None:
    survey = network_in(survey_bif(), ".bif")
    assert "has no laws" in str(pairs_of_tables(survey, NamedNetwork(SURVEY)))
    names = tuple(f"c{place}" for place in range(8))
    arcs = frozenset(itertools.combinations(names, 2))
    dense = NamedNetwork.of_laws(
        Dag(names, arcs),
        {name: tuple("abcd") for name in names},
        {
            name: (names[:place], np.full((4,) * (place + 1), 0.25))
            for place, name in enumerate(names)
        },
    )
    assert "too dense" in str(pairs_of_tables(dense, dense))


def encoded(levels: tuple[str, ...], shares: list[float]) -> dict[str, object]:
    """Two independent columns, of which b has one level, as `tacit network learn` writes them."""
    laws = [("a", shares), ("b", [1.0])]
    return {
        "columns": ["a", "b"],
        "arcs": [],
        "levels": {"a": levels, "b": ["only"]},
        "laws": [{"column": name, "parents": [], "law": law} for name, law in laws],
    }


@pytest.mark.parametrize(
    ("suffix", "text", "message"),
    [
        (".txt", "a -> b -> c", "line 1 is neither"),
        (".txt", "a -> b\nb -> a", "cycle"),
        (".txt", "[a][b|a", "list of columns"),
        (".txt", "\n".join(f"c{place}" for place in range(N_COLUMNS_MAX + 1)), "more than 64"),
        (".txt", "x" * 201, "1 to 200 characters"),
        (".json", "[1, 2]", "tacit network learn"),
        (".json", "{", "tacit network learn"),
        (".json", "[" * 100_000, "tacit network learn"),
        (".json", json.dumps(encoded(("x", "y"), [0.5, 0.6])), "sum to 1"),
        (".json", json.dumps(encoded(("x", "y"), [1.0])), "axis for each parent"),
        (".json", json.dumps(encoded(("x", "y"), [0.5, 0.5]) | {"laws": []}), "one law"),
        (".bif", "network x {", "missing at its end"),
        (".bif", "graph { }", "no block"),
        (".bif", survey_bif().replace("(A0, S0)", "(A9, S0)"), "do not have"),
        (".bif", survey_bif().replace("    (A0, S0) 0.75, 0.25;\n", ""), "leaves out"),
        (".bif", survey_bif().replace("0.75, 0.25", "0.75, many"), "no number"),
        (".bif", survey_bif().replace("0.75, 0.25", "0.75"), "must have 2 shares"),
        (".bif", survey_bif().replace("0.75, 0.25", "0.75, nan"), "leaves out|sum to 1"),
        (".bif", survey_bif().replace("variable A {", "variable B {"), "variables before them"),
    ],
)
def test_what_is_no_network_is_refused(suffix: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        network_in(text, suffix)


def test_a_law_of_many_shares_is_refused_before_it_is_made() -> None:
    wide = "\n".join(
        f"variable c{place} {{ type discrete [ 60 ] {{ {', '.join(map(str, range(60)))} }}; }}"
        for place in range(4)
    )
    with pytest.raises(ValueError, match="12960000 shares"):
        network_in(
            f"{wide}\nprobability ( c0 | c1, c2, c3 ) {{ default {', '.join(['0.1'] * 60)}; }}",
            ".bif",
        )
