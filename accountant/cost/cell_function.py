"""Whole-number functions of a cube's cells, stored on classes of levels.

A `CellFunction` depends on a few axes and is constant on products of classes of their levels. The
operations below (sum, product, magnitude, maximum over an axis) are exact, and never touch more
cells than the classes of their operands span.

Nothing here knows about weights, budgets or data. Proof: proofs/table_cost.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cube.cached import cached_property
from cube.grid import AxisClasses, by_first_appearance, first_places, slice_keys
from cube.query import Scope, check_scope

INT64_SAFE = 2**62  # magnitudes below this add and compare in int64 with a bit to spare

Whole: TypeAlias = NDArray[Any]  # int64, or object (Python integers) where int64 could overflow


@dataclass(frozen=True, eq=False)
class CellFunction:
    """A whole number for each cell, equal on cells whose levels are in the same classes.

    Parameters
    ----------
    axes : tuple of str
        The axes the function depends on, sorted and distinct.
    classes : tuple of AxisClasses
        The classes of each axis's levels.
    values : (n_classes of axes[0], ...) ndarray of int64 or of Python integers
        The value on each product of classes.
    """

    axes: Scope
    classes: tuple[AxisClasses, ...]
    values: Whole

    def __post_init__(self) -> None:
        check_scope(self.axes)
        if self.values.shape != tuple(classes.n_classes for classes in self.classes):
            raise ValueError("one value for each product of classes")

    @classmethod
    def of_levels(cls, axes: Scope, values: Whole) -> "CellFunction":
        """The function that an array over the levels of `axes` describes, on the fewest classes."""
        if values.ndim == 1:
            classes = AxisClasses(by_first_appearance(values))
            found = values[classes.representatives]
            return (
                cls((), (), found.reshape(())) if found.size == 1 else cls(axes, (classes,), found)
            )
        sizes = values.shape
        all_levels = tuple(AxisClasses(np.arange(size, dtype=np.int64)) for size in sizes)
        return cls(axes, all_levels, values).reduced()

    @classmethod
    def constant(cls, value: int) -> "CellFunction":
        """The same value on every cell."""
        dtype = whole_dtype(abs(value))
        return cls((), (), np.array(value, dtype=dtype))

    @cached_property
    def bound(self) -> int:
        """The largest magnitude."""
        return max(abs(int(self.values.min())), abs(int(self.values.max())))

    @property
    def size(self) -> int:
        """The number of stored values."""
        return self.values.size

    def reduced(self) -> "CellFunction":
        """The same function on the fewest classes; axes it does not depend on are dropped."""
        axes, classes, values = [], [], self.values
        dimension = 0
        for name, own in zip(self.axes, self.classes, strict=True):
            merged = by_first_appearance(slice_keys(values, dimension))
            first = first_places(merged)
            if first.size == 1:
                values = _array(values.take(0, axis=dimension), values)
                continue
            if first.size < own.n_classes:
                values = values.take(first, axis=dimension)
                own = AxisClasses(merged[own.of_level])  # noqa: PLW2901 - the merged one
            axes.append(name)
            classes.append(own)
            dimension += 1
        return CellFunction(tuple(axes), tuple(classes), values)

    def scaled(self, factor: int) -> "CellFunction":
        """The function times a whole number."""
        dtype = whole_dtype(self.bound * abs(factor))
        values = self.values.astype(dtype)
        return CellFunction(self.axes, self.classes, _array(values * factor, values))

    def magnitude(self) -> "CellFunction":
        """The absolute value on every cell."""
        if int(self.values.min()) >= 0:
            return self
        return CellFunction(self.axes, self.classes, _array(np.abs(self.values), self.values))

    def maximised(self, axis: str) -> "CellFunction":
        """The largest value over the levels of `axis`, as a function of the other axes."""
        place = self.axes.index(axis)
        return CellFunction(
            self.axes[:place] + self.axes[place + 1 :],
            self.classes[:place] + self.classes[place + 1 :],
            _array(self.values.max(axis=place), self.values),
        )

    def equals(self, other: "CellFunction") -> bool:
        """Whether both are stored alike: the same classes and the same values."""
        return (
            self.axes == other.axes
            and self.values.shape == other.values.shape
            and bool((self.values == other.values).all())
            and all(
                one is two or bool((one.of_level == two.of_level).all())
                for one, two in zip(self.classes, other.classes, strict=True)
            )
        )


def whole_dtype(bound: int) -> type[Any]:
    """The type for whole numbers of at most this magnitude: int64, or Python's own."""
    return np.int64 if bound < INT64_SAFE else object


def added(functions: Sequence[CellFunction]) -> CellFunction:
    """The sum of one or more functions, on the classes that their classes span."""
    return _combined(functions, np.add, sum(function.bound for function in functions))


def multiplied(functions: Sequence[CellFunction]) -> CellFunction:
    """The product of one or more functions, on the classes that their classes span."""
    # A factor of bound 0 makes the product 0 but not the partial products before it.
    bound = math.prod(max(1, function.bound) for function in functions)
    return _combined(functions, np.multiply, bound)


def outer_product(functions: Sequence[CellFunction]) -> CellFunction:
    """The product of functions that share no axis; if they are reduced, so is it unless zero."""
    values: Whole = np.ones((), dtype=whole_dtype(1))
    bound = 1
    for function in functions:
        bound *= max(1, function.bound)
        dtype = whole_dtype(bound)
        factor = function.values.astype(dtype, copy=False)
        values = np.multiply.outer(values.astype(dtype, copy=False), factor)
    parts = [pair for one in functions for pair in zip(one.axes, one.classes, strict=True)]
    order = sorted(range(len(parts)), key=lambda place: parts[place][0])
    return CellFunction(
        tuple(parts[place][0] for place in order),
        tuple(parts[place][1] for place in order),
        values.transpose(order),
    )


def joint_size(functions: Sequence[CellFunction]) -> int:
    """The number of values that combining the functions would store."""
    return math.prod(classes.n_classes for classes in joint_classes(functions).values())


def joint_classes(functions: Sequence[CellFunction]) -> dict[str, AxisClasses]:
    """The coarsest classes, of each axis, on which all the functions are constant."""
    by_axis: dict[str, list[AxisClasses]] = {}
    for function in functions:
        for name, classes in zip(function.axes, function.classes, strict=True):
            by_axis.setdefault(name, []).append(classes)
    return {name: joint_of(by_axis[name]) for name in sorted(by_axis)}


def joint_of(parts: Sequence[AxisClasses]) -> AxisClasses:
    """The coarsest classes of one axis's levels that refine every one of `parts`."""
    distinct = list({id(part): part for part in parts}.values())
    joint = max(distinct, key=lambda part: part.n_classes)
    for part in distinct:
        if part is not joint and not _refines(joint, part):
            joint = joint.refined(part.of_level)
    return joint


def _refines(fine: AxisClasses, coarse: AxisClasses) -> bool:
    """Whether levels that are together in `fine` are together in `coarse`."""
    of_class = coarse.of_level[fine.representatives]
    return bool((of_class[fine.of_level] == coarse.of_level).all())


def _array(result: Any, like: Whole) -> Whole:
    """The result of an operation as an array: numpy turns those without axes into scalars."""
    return np.asarray(result, dtype=like.dtype)


def _combined(
    functions: Sequence[CellFunction], operation: Callable[[Whole, Whole], Whole], bound: int
) -> CellFunction:
    joint = joint_classes(functions)
    place = {name: dimension for dimension, name in enumerate(joint)}
    dtype = whole_dtype(bound)
    combined: Whole | None = None
    for function in functions:
        shape = [1] * len(joint)
        values = function.values
        for dimension, (name, own) in enumerate(zip(function.axes, function.classes, strict=True)):
            wanted = joint[name]
            if wanted is not own:
                chosen = own.of_level[wanted.representatives]
                values = values.take(chosen, axis=dimension)
            shape[place[name]] = wanted.n_classes
        values = values.astype(dtype, copy=False).reshape(shape)
        combined = values if combined is None else _array(operation(combined, values), values)
    if combined is None:
        raise ValueError("nothing to combine")
    whole = np.broadcast_to(combined, tuple(classes.n_classes for classes in joint.values()))
    return CellFunction(tuple(joint), tuple(joint.values()), whole)
