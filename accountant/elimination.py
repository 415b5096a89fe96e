"""The largest value of a sum of cell functions, over cells that are never enumerated.

Axes are eliminated one after the other: the functions that mention an axis are added up, and their
sum's maximum over that axis is a function of the other axes. The result is exact. Where a sum
would span too many cells it is split, and the maxima of its pieces are added: never below the
truth, and said to be a bound.

Nothing here knows about budgets or data. Proof: proofs/table_cost.md, "Elimination".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from accountant.cell_function import CellFunction, added, joint_classes, joint_of
from cube.grid import AxisClasses

N_TABLE_CELLS_MAX = 2**16  # cells of one table: half a megabyte, well under a millisecond


@dataclass(frozen=True, slots=True)
class Maximum:
    """A maximum, or a proved upper bound on it."""

    value: int
    exact: bool


def maximum(functions: Sequence[CellFunction], n_cells_max: int = N_TABLE_CELLS_MAX) -> Maximum:
    """The largest value over all cells of a sum of functions.

    Parameters
    ----------
    functions : sequence of CellFunction
        Functions of one cube.
    n_cells_max : int
        The most cells an intermediate sum may span.

    Notes
    -----
    Bucket elimination and its mini-bucket relaxation [1]_, the next axis always the one whose
    elimination makes the smallest table. Functions that share no axis never meet in a table, so
    independent parts of a history are maximised separately.

    .. [1] R. Dechter and I. Rish, "Mini-buckets: a general scheme for bounded inference",
       Journal of the ACM 50(2), 2003.
    """
    joint = joint_classes(functions)
    representatives = {name: classes.representatives for name, classes in joint.items()}
    remaining = [function.on(representatives) for function in functions]
    exact = True
    sizes: dict[str, int] = {}
    unordered = set(joint)
    while unordered:
        for name in unordered - sizes.keys():
            sizes[name] = _table_size(name, remaining, joint)
        axis = min(sorted(unordered), key=sizes.__getitem__)
        bucket = [function for function in remaining if axis in function.axes]
        remaining = [function for function in remaining if axis not in function.axes]
        pieces = _pieces(bucket, n_cells_max)
        exact = exact and len(pieces) <= 1
        remaining += [added(piece).maximised(axis).reduced() for piece in pieces]
        unordered.discard(axis)
        touched = {name for function in bucket for name in function.axes}
        sizes = {name: size for name, size in sizes.items() if name not in touched}
    return Maximum(sum(int(function.values) for function in remaining), exact)


def _table_size(axis: str, functions: Sequence[CellFunction], joint: dict[str, AxisClasses]) -> int:
    """An upper bound on the cells that eliminating `axis` would span."""
    scope = {name for function in functions if axis in function.axes for name in function.axes}
    return math.prod(joint[name].n_classes for name in scope)


class _Piece:
    """Functions that will be added up, and the classes their sum is on."""

    def __init__(self, function: CellFunction) -> None:
        self.functions = [function]
        self.joint = joint_classes(self.functions)

    def takes(self, function: CellFunction, n_cells_max: int) -> bool:
        """Add the function if the sum then still spans at most `n_cells_max` cells."""
        own = dict(zip(function.axes, function.classes, strict=True))
        counts = {name: classes.n_classes for name, classes in self.joint.items()}
        for name, classes in own.items():
            counts[name] = max(counts.get(name, 1), classes.n_classes)
        if math.prod(counts.values()) > n_cells_max:
            return False  # before classes are split any further; spares most of the work
        joint = dict(self.joint)
        for name, classes in own.items():
            joint[name] = joint_of([joint[name], classes]) if name in joint else classes
        if math.prod(classes.n_classes for classes in joint.values()) > n_cells_max:
            return False
        self.functions.append(function)
        self.joint = joint
        return True


def _pieces(bucket: list[CellFunction], n_cells_max: int) -> list[list[CellFunction]]:
    """Split functions, largest first, into lists that each span few enough cells."""
    pieces: list[_Piece] = []
    for function in sorted(bucket, key=lambda function: -function.size):
        if not any(piece.takes(function, n_cells_max) for piece in pieces):
            pieces.append(_Piece(function))
    return [piece.functions for piece in pieces]
