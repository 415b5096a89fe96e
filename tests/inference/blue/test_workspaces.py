"""Which rows a workspace of several scopes holds: those that contain the query's before others."""

import numpy as np
import pytest

from cube.block import Partition, QueryBlock
from cube.query import Scope, counting
from inference.blue import workspaces as module
from inference.blue.relevance import relevant_rows
from inference.blue.workspace import Workspace
from inference.blue.workspaces import Workspaces
from inference.history import History
from tests.inference.test_estimator import N_CELLS, SCHEMA, measured
from tests.support.cubes import SIZES


def by(*names: str) -> QueryBlock:
    shape = tuple(SIZES[name] for name in names)
    return QueryBlock(counting(), Partition(names, np.arange(np.prod(shape)).reshape(shape)))


@pytest.fixture
def history() -> History:
    """The farthest rows were measured first."""
    found = History()
    blocks = (by("c"), by("b", "c"), by("a", "b"), by("a"))
    found.add([measured(block, np.arange(N_CELLS), 1.0) for block in blocks])
    return found


def workspace_for(scope: Scope, history: History) -> Workspace:
    relevant = relevant_rows(scope, history.n_rows, SIZES, n_cells_max=10**6, n_rows_max=10**6)
    return Workspaces(SCHEMA, 2**24).of_scopes(relevant, history)


def test_all_rows_are_in_use_while_they_are_few(history: History) -> None:
    workspace = workspace_for(("a",), history)
    assert all(workspace.has(place) for place in range(4))


def test_rows_beside_are_left_out_once_there_are_many_atoms(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "N_ATOMS_BESIDE_MAX", SIZES["a"] * SIZES["b"])
    in_use = {
        scope: [workspace_for(scope, history).has(place) for place in range(4)]
        for scope in (("a",), ("c",))
    }
    assert in_use["a",] == [False, False, True, True]  # whatever the limit
    assert in_use["c",] == [True, True, False, False]  # eight atoms; any other row makes 24
