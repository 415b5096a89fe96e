"""Whole-number functions of a cube's cells, stored on classes of levels.

A `CellFunction` depends on a few axes and is constant on products of classes of their levels, or,
along an axis of many levels, a polynomial of the level's place on each class. The
operations below (sum, product, magnitude, maximum over an axis) are exact unless they say so, and
never touch more cells than the classes of their operands span.

Nothing here knows about weights, budgets or data. Proof: proofs/table_cost.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cube.classes import AxisClasses, by_first_appearance, first_places
from cube.grid import slice_keys
from cube.pieces import Pieces
from cube.query import Scope, check_scope
from cube.runtime import cached_property

INT64_SAFE = 2**62  # magnitudes below this add and compare in int64 with a bit to spare

Whole: TypeAlias = NDArray[Any]  # int64, or object (Python integers) where int64 could overflow


@dataclass(frozen=True, eq=False)
class CellFunction:
    """A whole number for each cell: on products of classes of levels, a constant or a polynomial.

    Parameters
    ----------
    axes : tuple of str
        The axes the function depends on, sorted and distinct.
    classes : tuple of AxisClasses
        The classes of each axis's levels.
    values : (n_parts of axes[0], ...) ndarray of int64 or of Python integers
        The coefficient of each product of parts: the value itself, on axes of degree 0.
    exact : bool
        Whether it is the function that was meant, or only nowhere below it.
    """

    axes: Scope
    classes: tuple[AxisClasses, ...]
    values: Whole
    exact: bool = True

    def __post_init__(self) -> None:
        check_scope(self.axes)
        if self.values.shape != tuple(classes.n_parts for classes in self.classes):
            raise ValueError("there must be one value for each product of classes and powers")

    @classmethod
    def of_levels(cls, axes: Scope, numbers: Whole | Pieces) -> "CellFunction":
        """The function that an array over the levels of `axes` describes, on the fewest classes."""
        if isinstance(numbers, Pieces):
            divided = AxisClasses.undivided(numbers.size).refined(numbers)
            found = divided.coefficients(numbers)
            return (
                cls((), (), found.reshape(())) if found.size == 1 else cls(axes, (divided,), found)
            )
        if numbers.ndim == 1:
            classes = AxisClasses.of_labels(by_first_appearance(numbers))
            found = numbers[classes.representatives]
            return (
                cls((), (), found.reshape(())) if found.size == 1 else cls(axes, (classes,), found)
            )
        sizes = numbers.shape
        all_levels = tuple(AxisClasses.of_labels(np.arange(size, dtype=np.int64)) for size in sizes)
        return cls(axes, all_levels, numbers).reduced()

    @classmethod
    def constant(cls, value: int) -> "CellFunction":
        """The same value on every cell."""
        dtype = whole_dtype(abs(value))
        return cls((), (), np.array(value, dtype=dtype))

    @cached_property
    def degree(self) -> int:
        """The highest power that any axis has."""
        return max((classes.degree for classes in self.classes), default=0)

    @cached_property
    def bound(self) -> int:
        """The largest magnitude, of a function without a concave piece that is not negative."""
        if self.degree:
            return self.flattened().bound
        return self.stored_bound

    @cached_property
    def stored_bound(self) -> int:
        """The largest magnitude of the stored values."""
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
            by_class = _by_class(values, dimension, own)
            merged = by_first_appearance(np.asarray(slice_keys(by_class, dimension)))
            first = first_places(merged)
            if first.size == 1 and not own.degree:
                values = _array(values.take(0, axis=dimension), values)
                continue
            if first.size < own.n_classes:
                kept = (first[:, np.newaxis] * own.n_powers + np.arange(own.n_powers)).ravel()
                values = values.take(kept, axis=dimension)
                own = own.merged(merged)  # noqa: PLW2901 - the merged one
            axes.append(name)
            classes.append(own)
            dimension += 1
        return CellFunction(tuple(axes), tuple(classes), values, self.exact)

    def scaled(self, factor: int) -> "CellFunction":
        """The function times a whole number."""
        dtype = whole_dtype(self.stored_bound * abs(factor))
        values = self.values.astype(dtype)
        return CellFunction(self.axes, self.classes, _array(values * factor, values), self.exact)

    def priced(self, price: Callable[[int], Fraction]) -> "CellFunction":
        """The price of each value, rounded up, of a function that is constant on classes."""
        if self.degree:
            raise ValueError("the price of a polynomial is not constant within its classes")
        values, places = np.unique(self.values, return_inverse=True)
        prices = [math.ceil(price(int(value))) for value in values.tolist()]
        dtype = whole_dtype(max(map(abs, prices)))
        priced = np.array(prices, dtype=dtype)[places.ravel()].reshape(self.values.shape)
        return CellFunction(self.axes, self.classes, _array(priced, priced), self.exact)

    def magnitude(self) -> "CellFunction":
        """The absolute value on every cell, of a function that is constant on classes."""
        if self.degree:
            raise ValueError("the magnitude of a polynomial must be computed piece by piece")
        if int(self.values.min()) >= 0:
            return self
        magnitude = _array(np.abs(self.values), self.values)
        return CellFunction(self.axes, self.classes, magnitude, self.exact)

    def maximised(self, axis: str) -> "CellFunction":
        """The largest value over the levels of `axis`, as a function of the other axes.

        The function is not negative and nowhere concave. Along another axis on which it is a
        polynomial, it is bounded by its largest value in each class.
        """
        flat = self.flattened(but=axis)
        place = flat.axes.index(axis)
        values = _at_corners(flat.values, place, flat.classes[place])
        return CellFunction(
            flat.axes[:place] + flat.axes[place + 1 :],
            flat.classes[:place] + flat.classes[place + 1 :],
            _array(values.max(axis=place), values),
            flat.exact,
        )

    def flattened(self, but: str | None = None) -> "CellFunction":
        """The largest value in each class, along every axis on which it is a polynomial."""
        values, classes, exact = self.values, list(self.classes), self.exact
        for place, (name, own) in enumerate(zip(self.axes, self.classes, strict=True)):
            if own.degree and name != but:
                corners = _at_corners(values, place, own)
                values = np.maximum(*np.split(corners, 2, axis=place))
                classes[place] = own.constant
                exact = False
        return (
            self
            if values is self.values
            else CellFunction(self.axes, tuple(classes), values, exact)
        )

    def between(self, axis: str, start: int, end: int) -> "CellFunction":
        """The function where `axis` has the levels ``start .. end - 1`` only.

        Along an axis on which it is a polynomial it is bounded by its largest value in each class.
        An axis on which it is the same at all of these levels is dropped.
        """
        if axis not in self.axes:
            return self
        place = self.axes.index(axis)
        flat = self.flattened() if self.classes[place].degree else self
        classes, before = flat.classes[place].between(start, end)
        values = flat.values.take(before, axis=place)
        if classes.n_classes > 1:
            kept = (*flat.classes[:place], classes, *flat.classes[place + 1 :])
            return CellFunction(flat.axes, kept, values, flat.exact)
        return CellFunction(
            flat.axes[:place] + flat.axes[place + 1 :],
            flat.classes[:place] + flat.classes[place + 1 :],
            _array(values.take(0, axis=place), values),
            flat.exact,
        )

    @property
    def is_nothing(self) -> bool:
        """Whether it is 0 on every cell."""
        return not self.values.any()

    def equals(self, other: "CellFunction") -> bool:
        """Whether both are stored alike: the same classes and the same values."""
        return (
            self.axes == other.axes
            and self.exact == other.exact
            and self.values.shape == other.values.shape
            and bool((self.values == other.values).all())
            and all(
                one is two or one.equals(two)
                for one, two in zip(self.classes, other.classes, strict=True)
            )
        )


def _by_class(values: Whole, dimension: int, classes: AxisClasses) -> Whole:
    """The values with the powers of each class in a dimension of their own, the last."""
    if not classes.degree:
        return values
    shape = values.shape
    split = (*shape[:dimension], classes.n_classes, classes.n_powers, *shape[dimension + 1 :])
    return np.moveaxis(values.reshape(split), dimension + 1, -1)


def _at_corners(values: Whole, dimension: int, classes: AxisClasses) -> Whole:
    """The values at the first level of every class, followed by those at the last.

    What is not concave is largest at one of the two. Along an axis of degree 0, the values are
    those of all levels.
    """
    if not classes.degree:
        return values
    by_power = np.moveaxis(_by_class(values, dimension, classes), -1, 0)
    places = [classes.first_levels.tolist(), classes.last_levels.tolist()]
    largest = classes.n_levels**2 * max(abs(int(values.min())), abs(int(values.max()))) * 3
    powers = by_power.astype(whole_dtype(largest), copy=False)
    shape = [-1 if n == dimension else 1 for n in range(values.ndim)]
    corners = []
    for levels in places:
        place = np.array(levels, dtype=powers.dtype).reshape(shape)
        factors = (1, place, place * (place - 1) // 2)
        corners.append(sum(one * factor for one, factor in zip(powers, factors, strict=False)))
    return np.concatenate(corners, axis=dimension)


def whole_dtype(bound: int) -> type[Any]:
    """The type for whole numbers of at most this magnitude: int64, or Python's own."""
    return np.int64 if bound < INT64_SAFE else object


def added(functions: Sequence[CellFunction]) -> CellFunction:
    """The sum of one or more functions, on the classes that their classes span."""
    bound = sum(function.stored_bound for function in functions)
    return _combined(functions, np.add, bound)


def multiplied(functions: Sequence[CellFunction]) -> CellFunction:
    """The product of one or more functions, on the classes that their classes span.

    Along each axis, at most one of them is a polynomial.
    """
    # A factor of bound 0 makes the product 0 but not the partial products before it.
    bound = math.prod(max(1, function.stored_bound) for function in functions)
    return _combined(functions, np.multiply, bound)


def outer_product(functions: Sequence[CellFunction]) -> CellFunction:
    """The product of functions that share no axis; if they are reduced, so is it unless zero."""
    values: Whole = np.ones((), dtype=whole_dtype(1))
    bound = 1
    for function in functions:
        bound *= max(1, function.stored_bound)
        dtype = whole_dtype(bound)
        factor = function.values.astype(dtype, copy=False)
        values = np.multiply.outer(values.astype(dtype, copy=False), factor)
    parts = [pair for one in functions for pair in zip(one.axes, one.classes, strict=True)]
    order = sorted(range(len(parts)), key=lambda place: parts[place][0])
    return CellFunction(
        tuple(parts[place][0] for place in order),
        tuple(parts[place][1] for place in order),
        values.transpose(order),
        all(function.exact for function in functions),
    )


def joint_size(functions: Sequence[CellFunction]) -> int:
    """The number of values that combining the functions would store."""
    return math.prod(classes.n_parts for classes in joint_classes(functions).values())


def joint_classes(functions: Sequence[CellFunction]) -> dict[str, AxisClasses]:
    """The coarsest classes, of each axis, on which all the functions are constant."""
    by_axis: dict[str, list[AxisClasses]] = {}
    for function in functions:
        for name, classes in zip(function.axes, function.classes, strict=True):
            by_axis.setdefault(name, []).append(classes)
    return {name: joint_of(by_axis[name]) for name in sorted(by_axis)}


def joint_of(parts: Sequence[AxisClasses]) -> AxisClasses:
    """The coarsest classes of one axis's levels that refine every one of `parts`.

    One of `parts` itself, if it refines the others.
    """
    distinct = {id(part): part for part in parts}.values()
    finest = max(distinct, key=lambda part: part.n_parts)
    return finest.refined_by([part for part in distinct if part is not finest])


def _array(result: Any, like: Whole) -> Whole:
    """The result of an operation as an array: numpy turns those without axes into scalars."""
    return np.asarray(result, dtype=like.dtype)


def _combined(
    functions: Sequence[CellFunction], operation: Callable[[Whole, Whole], Whole], bound: int
) -> CellFunction:
    joint = joint_classes(functions)
    dtype = whole_dtype(bound)
    combined: Whole | None = None
    for function in functions:
        values = function.values.astype(dtype, copy=False)
        values = _on_parts(function, values, joint, is_sum=operation is np.add)
        combined = values if combined is None else _array(operation(combined, values), values)
    if combined is None:
        raise ValueError("there is nothing to combine")
    whole = np.broadcast_to(combined, tuple(classes.n_parts for classes in joint.values()))
    exact = all(function.exact for function in functions)
    return CellFunction(tuple(joint), tuple(joint.values()), whole, exact)


def _on_parts(
    function: CellFunction, values: Whole, joint: Mapping[str, AxisClasses], *, is_sum: bool
) -> Whole:
    """A function's values on the parts of finer classes, to be added up or multiplied.

    A sum has each power by itself. In a product, what is constant along an axis multiplies every
    power there.
    """
    own = dict(zip(function.axes, function.classes, strict=True))
    spread = values.reshape([own[name].n_parts if name in own else 1 for name in joint])
    for dimension, (name, wanted) in enumerate(joint.items()):
        classes = own.get(name)
        if classes is wanted:
            continue
        if classes is None:
            if is_sum and wanted.degree:
                shape = [-1 if n == dimension else 1 for n in range(len(joint))]
                spread = spread * (wanted.powers == 0).astype(values.dtype).reshape(shape)
            continue
        parents = classes.parents(wanted)
        if not is_sum and not classes.degree:
            parents = classes.at(wanted.representatives)
        spread = spread.take(parents, axis=dimension)
        if int(parents.min()) < 0:
            shape = [-1 if n == dimension else 1 for n in range(len(joint))]
            spread = spread * (parents >= 0).astype(values.dtype).reshape(shape)
    return spread
