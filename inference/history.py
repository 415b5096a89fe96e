"""The measurements of one table, indexed for the needs of estimates.

A measurement that was raised to a larger weight replaces the one from which it was raised: the
earlier value is the later one plus noise, and adds no information. A replaced measurement keeps its
place and is not used.

The history of a federated table can be read as if one holder had all rows (`pooled`): a block that
each of the holders has measured is one block, with the sum of their values. Its noise is a sum of
independent noises, one for each holder, with the variance that is stated. What reads variances
alone (marginals, synthetic tables) reads this; what needs the exact law of an answer reads the
history itself.

It holds noisy values, and adds up those of holders; it computes nothing else with them.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from cube.encoding import fingerprint
from cube.holders import Holders
from cube.measurement import Measurement
from cube.query import QueryBlock, Scope

N_JOINT_ROWS_MAX = 256  # a larger block takes too long to combine; its groups are summed instead


class History:
    """An append-only list of measurements, each with its place."""

    def __init__(self) -> None:
        self._measurements: list[Measurement] = []
        self._replaced: set[int] = set()
        self._most_precise: dict[str, int] = {}
        self._places: dict[Scope, list[int]] = {}
        self._n_rows: dict[Scope, int] = {}
        self._in_use: dict[str, tuple[int, ...]] = {}
        self._partitions: dict[Scope, dict[str, int]] = {}
        self._own: set[Scope] = set()
        """The scopes whose places and partitions no copy shares."""

    def __len__(self) -> int:
        return len(self._measurements)

    def __getitem__(self, place: int) -> Measurement:
        return self._measurements[place]

    def has(self, place: int) -> bool:
        """Whether there is a measurement at a place."""
        return 0 <= place < len(self._measurements)

    def copy(self) -> "History":
        """An equal history that grows independently; the measurements are shared."""
        other = History()
        other._measurements = self._measurements.copy()
        other._replaced = self._replaced.copy()
        other._most_precise = self._most_precise.copy()
        other._places = self._places.copy()
        other._n_rows = self._n_rows.copy()
        other._in_use = self._in_use.copy()
        other._partitions = self._partitions.copy()
        self._own = set()  # what is inside them is shared from now on
        return other

    @property
    def n_rows(self) -> Mapping[Scope, int]:
        """The number of rows on each scope that are used in joint estimates."""
        return MappingProxyType(self._n_rows)

    @property
    def partition_scopes(self) -> tuple[Scope, ...]:
        """The scopes on which disjoint groups were counted."""
        return tuple(self._partitions)

    def add(self, measurements: Sequence[Measurement]) -> None:
        """Append measurements, in the order of purchase."""
        for measurement in measurements:  # tens of thousands, when a server starts
            block, before = measurement.block, measurement.supersedes
            place, scope, name = len(self._measurements), block.scope, fingerprint(block)
            self._measurements.append(measurement)
            if scope not in self._own:
                self._make_own(scope)
            if before is not None:
                self._replaced.add(before)
            if block.n_rows <= N_JOINT_ROWS_MAX:
                self._places.setdefault(scope, []).append(place)
                if before is None:
                    self._n_rows[scope] = self._n_rows.get(scope, 0) + block.n_rows
            held = self._in_use.get(name)
            if held is None:
                self._in_use[name] = (place,)
            else:
                self._in_use[name] = (*(one for one in held if one != before), place)
            self._keep_if_more_precise(self._most_precise, name, place)
            if counts_groups(block):
                self._keep_if_more_precise(self._partitions.setdefault(scope, {}), name, place)

    def most_precise(self, block: QueryBlock) -> int | None:
        """The place of the most precise measurement of the same rows."""
        return self._most_precise.get(fingerprint(block))

    def raisable(self, block: QueryBlock, *, is_gaussian: bool) -> int | None:
        """The place of the most precise measurement of the same rows with one kind of noise."""
        return min(
            (
                place
                for place in self.in_use_of(fingerprint(block))
                if self._measurements[place].is_gaussian is is_gaussian
            ),
            key=lambda place: self._measurements[place].noise_scale,
            default=None,
        )

    def in_use_of(self, name: str) -> tuple[int, ...]:
        """The places of the measurements of a block, by its fingerprint, that are not replaced."""
        return self._in_use.get(name, ())

    def partitions(self, axes: Scope) -> dict[int, Measurement]:
        """The most precise measurement of each partition with axes within `axes`, by its place."""
        within = frozenset(axes)
        return {
            place: self._measurements[place]
            for scope, known in self._partitions.items()
            if within.issuperset(scope)
            for place in known.values()
        }

    def partitions_with(self, axes: Scope) -> dict[int, Measurement]:
        """The most precise measurement of each partition with these axes among its own."""
        wanted = frozenset(axes)
        return {
            place: self._measurements[place]
            for scope, known in self._partitions.items()
            if wanted.issubset(scope)
            for place in known.values()
        }

    def partition_places(self, scope: Scope) -> dict[int, Measurement]:
        """The most precise measurement of each partition whose axes are these, by its place."""
        return {place: self._measurements[place] for place in self._partitions[scope].values()}

    def partitions_on(self, scope: Scope) -> list[Measurement]:
        """The most precise measurement of each partition whose axes are these."""
        return [self._measurements[place] for place in self._partitions[scope].values()]

    def last_on(self, scope: Scope) -> int | None:
        """The place of the last measurement on a scope."""
        known = (*self._places.get(scope, ()), *self._partitions.get(scope, {}).values())
        return max(known, default=None)

    def in_use(self, scopes: Sequence[Scope], since: int = 0) -> Iterator[int]:
        """The places, from `since` on, of the measurements on `scopes` for joint estimates."""
        places = [place for scope in scopes for place in self._places.get(scope, ())]
        return (place for place in sorted(places) if place >= since and place not in self._replaced)

    def earlier(self, place: int) -> Iterator[int]:
        """The places of the measurements from which one was raised, the latest first."""
        before = self._measurements[place].supersedes
        while before is not None:
            yield before
            before = self._measurements[before].supersedes

    def _make_own(self, scope: Scope) -> None:
        """Share what is known of a scope with no copy."""
        self._own.add(scope)
        if scope in self._places:
            self._places[scope] = self._places[scope].copy()
        if scope in self._partitions:
            self._partitions[scope] = self._partitions[scope].copy()

    def _keep_if_more_precise(self, known: dict[str, int], name: str, place: int) -> None:
        held = known.get(name)
        measured = self._measurements
        if held is None or measured[held].noise_scale > measured[place].noise_scale:
            known[name] = place


def counts_groups(block: QueryBlock) -> bool:
    """Whether a block only counts records, of disjoint groups or of the whole table."""
    terms = block.query.terms
    return len(terms) == 1 and terms[0].scale == 1 and not terms[0].factors


def held_by(history: History, holders: Holders, level: int) -> History:
    """What one holder has measured, as it has the rows."""
    found = History()
    for place in range(len(history)):
        one = history[place]
        holder, block = holders.at_holder(one.block)
        if holder == level and history.most_precise(one.block) == place:
            found.add([replace(one, block=block, supersedes=None)])
    return found


def pooled(history: History, holders: Holders, levels: Collection[int] | None = None) -> History:
    """The blocks that all holders have measured, each with the sum of its most precise values.

    With `levels`, those that these holders have measured, and the sum over them.
    """
    wanted = set(range(holders.n_holders) if levels is None else levels)
    parts: dict[str, dict[int, Measurement]] = {}
    for place in range(len(history)):
        one = history[place]
        if history.most_precise(one.block) != place:
            continue
        level, block = holders.at_holder(one.block)
        if level in wanted:
            parts.setdefault(fingerprint(block), {})[level] = one
    found = History()
    for of_block in parts.values():
        if len(of_block) == len(wanted):
            found.add([_summed([of_block[level] for level in sorted(of_block)], holders)])
    return found


def _summed(parts: Sequence[Measurement], holders: Holders) -> Measurement:
    """The sum of the values of all holders, at the weight of the least precise of them."""
    _, block = holders.at_holder(parts[0].block)
    bits = max(one.lattice_bits for one in parts)
    shifted = [
        [value << (bits - one.lattice_bits) for value in one.lattice_values] for one in parts
    ]
    scale = math.sqrt(sum(one.noise_scale**2 for one in parts))
    widest = max(parts, key=lambda one: one.noise_scale)
    return Measurement(
        block,
        widest.weight,
        bits,
        max(scale, widest.noise_scale),
        tuple(map(sum, zip(*shifted, strict=True))),
        averaging_error=sum(one.lattice_widening for one in parts) - 2.0**-bits,
    )
