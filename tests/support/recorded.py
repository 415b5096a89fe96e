"""Record and replay: one history of releases on two neighbouring tables, value by value.

A service is run on a table, and every read, every exact answer, every draw and every score on the
way is written down, with what was released. The same statements are then run on a neighbouring
table, with every release forced to be what it was. So the two runs may differ in private values
alone. What differs elsewhere is a leak for which nobody paid:

    reads       the same scopes in the same order; counts move by the rows of one unit at most
    answers     by so much that all rows together lose no more than the ledger says is spent
    noise       the laws that were charged, on draws that nobody touched
    choices     the same candidates; the chosen one about as probable, within its charge
    the rest    the same answers, and the same ledger to the letter, but for times and digests

Unlike an attack, this needs two runs, and names the stage at fault.

References
----------
Cebere, Erb, Desfontaines, Bellet & Fitzsimons 2026, "Privacy in Theory, Bugs in Practice: Grey-Box
Auditing of Differential Privacy Libraries" (Re:cord-play), arXiv:2602.17454.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import zip_longest
from typing import Any, Final, TypeAlias, TypeVar
from unittest import mock

import numpy as np

from accountant.cost.zcdp_account import cost_of
from accountant.exact import choices as exponential_mechanism
from accountant.gate import release
from accountant.gate.release import Release
from accountant.grouping import Grouping
from accountant.ledger.charged import (
    ChargedBlock,
    ChargedChoice,
    ChargedDistance,
    ChargedGaussian,
    ChargedStatistic,
    ChargedUnitCount,
)
from accountant.ledger.entries import Charge
from accountant.ledger.entry_json import write_charge
from accountant.noise.lattice_noise import GaussianNoise, LatticeNoise, OnLattice, SystemNoise
from accountant.source import CellCounts, UnitCells
from cube.encoding import canonical_json
from cube.measurement import UNITS_PER_EPSILON, Weight
from proxy.bootstrap import Service

Numbers: TypeAlias = tuple[int, ...]
Served: TypeAlias = Callable[[], AbstractContextManager[Service]]
Asking: TypeAlias = Callable[[Service], list[str]]

TIMES = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?")
CLAMPED: Final = 2**61  # in lattice steps: what is beyond may have been clamped
OF_THE_DATA = re.compile(r'"(data_fingerprint|rows_fingerprint)":"[^"]*"')  # keyed: see SECURITY


class Convicted(Exception):
    """What two runs show that nobody paid for: the stage at fault, and what differs there."""

    def __init__(self, stage: str, what: str) -> None:
        super().__init__(f"{stage}: {what}")
        self.stage = stage


@dataclass
class Charged:
    """A charge whose measurement begins."""

    table: str
    rows_per_unit: int
    charge: Charge


@dataclass
class Read:
    """Counts that were read: of cells, or of each unit's cells, by the unit's digest."""

    grouping: object
    counts: Counter[Numbers]
    is_of_units: bool


@dataclass
class Drawn:
    """Noise from the system's entropy: of a law, or of a finer one after a coarser."""

    laws: tuple[OnLattice, ...]
    noise: Numbers


@dataclass
class Added:
    """Exact answers to which noise was added, and what was released."""

    law: OnLattice
    noise: Numbers
    exact: Numbers
    released: Numbers


@dataclass
class Chosen:
    """The scores of candidates, and the one that was chosen."""

    scores: list[int]
    delta: int
    weight: Weight
    place: int


Event: TypeAlias = Charged | Read | Drawn | Added | Chosen
Pair: TypeAlias = tuple[Event, Event]
E = TypeVar("E", Charged, Read, Drawn, Added, Chosen)


@dataclass
class Tape:
    """What happened inside of a run, in order, and what was seen of it outside."""

    events: list[Event] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    ledger: list[str] = field(default_factory=list)
    measured: list[dict[str, Any]] = field(default_factory=list)
    spent: dict[str, Fraction] = field(default_factory=dict)


@dataclass(frozen=True)
class Compared:
    """What the comparison of two runs came to.

    Parameters
    ----------
    n_values : int
        The private values that were compared.
    share : float
        What a transcript like this one loses at most between the two tables, over what the ledger
        says was spent on it.
    """

    n_values: int
    share: float


class _Recorder:
    """What happens is written down; in a replay, releases and draws are those of the other run."""

    def __init__(self, forced: Tape | None) -> None:
        self.tape = Tape()
        self.convicted: Convicted | None = None
        self._events = None if forced is None else iter(forced.events)

    def note(self, event: Event) -> Event:
        """Write an event down; the event itself, or the one of the other run in its place."""
        self.tape.events.append(event)
        if self._events is None:
            return event
        other = next(self._events, None)
        if other is None or _public(event) != _public(other):
            self.convicted = self.convicted or Convicted("control flow", "runs take other ways")
            raise self.convicted
        return other


def recorded(serve: Served, ask: Asking, forced: Tape | None = None) -> Tape:
    """What happens in a service as it is asked.

    Parameters
    ----------
    serve : callable
        Makes the service, of tables with one ledger.
    ask : callable
        Asks it, and returns all that was seen.
    forced : Tape, optional
        The run whose releases this one has to repeat.

    Raises
    ------
    Convicted
        If it does anything in another order than the recorded run, or what it does is not public.
    """
    recorder = _Recorder(forced)
    try:
        with _watched(recorder), serve() as service:
            recorder.tape.seen = [TIMES.sub("", text) for text in ask(service)]
            for entry in service.ledger.entries():
                text = OF_THE_DATA.sub("", TIMES.sub("", entry.body))
                recorder.tape.ledger.append(f"{entry.kind} {entry.table} {text}")
                if entry.kind == "measurement":
                    recorder.tape.measured.append(json.loads(entry.body))
                if entry.kind == "charge":
                    spent = Fraction(json.loads(entry.body)["units_after"], UNITS_PER_EPSILON)
                    recorder.tape.spent[entry.table] = spent
    except Exception:
        if recorder.convicted is not None:
            raise recorder.convicted from None
        raise
    return recorder.tape


def compared(one: Tape, other: Tape) -> Compared:
    """Compare two runs on neighbouring tables, the second forced to release what the first did.

    Raises
    ------
    Convicted
        If they differ in what nobody paid for.
    """
    for public, again in zip_longest(one.seen, other.seen):
        if public != again:
            raise Convicted("answers", f"{public!r} and {again!r} follow from equal releases")
    for public, again in zip_longest(one.ledger, other.ledger):
        if public != again:
            raise Convicted("ledger", "entries differ that follow from equal releases")
    if len(one.events) != len(other.events):
        raise Convicted("control flow", "one of the runs does more")
    _check_told(one)
    losses: dict[str, _Losses] = defaultdict(_Losses)
    n_values = sum(
        losses[charged.table].follow(charged, pairs) for charged, pairs in _by_charge(one, other)
    )
    for name, lost in losses.items():
        if lost.total > one.spent[name]:
            spent = float(one.spent[name])
            raise Convicted("charge", f"{float(lost.total)} is lost where {spent} is paid")
    share = max(
        (lost.total / one.spent[name] for name, lost in losses.items()), default=Fraction(0)
    )
    return Compared(n_values, float(share))


def _check_told(tape: Tape) -> None:
    """Raise Convicted unless the ledger has just what noise was added to, and what was chosen."""
    told = [
        number
        for body in tape.measured
        for numbers in (body.get("released", []), *body["lattice_values"])
        for number in numbers
    ]
    released: list[int] = []
    for event in tape.events:
        if isinstance(event, Added):
            released.extend(event.released)
        elif isinstance(event, Chosen):
            released.append(event.place)
    if told != released:
        raise Convicted("noise", "the ledger has numbers to which no noise was added")


def _by_charge(one: Tape, other: Tape) -> Iterator[tuple[Charged, list[Pair]]]:
    """Each charge, and what happened of it in both runs."""
    charged: Charged | None = None
    pairs: list[Pair] = []
    for pair in zip(one.events, other.events, strict=True):
        if isinstance(pair[0], Charged):
            if charged is not None:
                yield charged, pairs
            charged, pairs = pair[0], []
        else:
            pairs.append(pair)
    if charged is not None:
        yield charged, pairs


@dataclass(frozen=True)
class Lost:
    """What a measurement loses, as long as no later one is refined from its noise."""

    epsilon: Fraction
    noise: LatticeNoise | None = None


NOTHING = Lost(Fraction(0))


class _Losses:
    """What the releases about one table lose between two tables, in epsilon."""

    def __init__(self) -> None:
        self._rows: list[Lost] = []  # by each measurement, in the order of purchase
        self._units: list[Lost] = []  # by each count of units
        self._statistics = Fraction(0)
        self._rho = Fraction(0)
        self._constant = self._order = Fraction(0)  # of the table's account of Gaussian noise

    @property
    def total(self) -> Fraction:
        """All of it, Gaussian noise at the order of the table's account."""
        found = sum((one.epsilon for one in (*self._rows, *self._units)), self._statistics)
        return found + self._constant + self._order * self._rho

    def follow(self, charged: Charged, pairs: Sequence[Pair]) -> int:
        """Add what one charge released; how many values were compared."""
        charge = charged.charge
        n_values = 0
        for one, other in pairs:
            n_values += _n_values(one)
            if isinstance(one, Read) and isinstance(other, Read):
                _check_reads(one, other, charged.rows_per_unit)
        if charge.terms is not None:
            self._order, self._constant = charge.terms.order, cost_of(charge.terms, 0)
        rest = iter([pair for pair in pairs if not isinstance(pair[0], Read)])
        for statistic in charge.statistics:
            self._follow_statistic(statistic, rest)
        for block in charge.blocks:
            if isinstance(block.noise, GaussianNoise):
                self._rho += _rho(block.noise, _moved(rest, block.noise))
                self._rows.append(NOTHING)
            else:
                self._follow_laplace(self._rows, block, rest)
        if next(rest, None) is not None:
            raise Convicted("control flow", "something was released that is in no charge")
        return n_values

    def _follow_statistic(self, statistic: ChargedStatistic, rest: Iterator[Pair]) -> None:
        match statistic:
            case ChargedChoice(_, weight):
                self._statistics += _choice_loss(*_next(rest, Chosen), weight)
            case ChargedGaussian(_, noise):
                self._rho += _rho(noise, _moved(rest, noise))
            case ChargedUnitCount():
                self._follow_laplace(self._units, statistic.rows, rest)
            case ChargedDistance(_, noise):
                self._statistics += noise.weight.exact * sum(_moved(rest, noise))

    def _follow_laplace(self, known: list[Lost], block: ChargedBlock, rest: Iterator[Pair]) -> None:
        """Refined noise loses in all what noise of the larger weight loses (proofs/noise.md)."""
        noise, earlier = block.laplace_noise, None
        if block.raised_from is not None:
            earlier = known[block.raised_from].noise
            known[block.raised_from] = NOTHING
        moved = _moved(rest, noise, earlier)
        known.append(Lost(noise.weight.exact * sum(moved), noise))


def _n_values(event: Event) -> int:
    """How many private values an event has."""
    match event:
        case Read(_, counts, _):
            return len(counts)
        case Added(_, _, exact, _):
            return len(exact)
        case Chosen(scores, _, _, _):
            return len(scores)
        case _:
            return 0


def _next(rest: Iterator[Pair], kind: type[E]) -> tuple[E, E]:
    """The next event of both runs, which is of a kind."""
    one, other = next(rest, (None, None))
    if not isinstance(one, kind) or not isinstance(other, kind):
        raise Convicted("noise", f"nothing is {kind.__name__.lower()} where it was charged")
    return one, other


def _moved(
    rest: Iterator[Pair],
    law: LatticeNoise | GaussianNoise,
    refined_from: LatticeNoise | None = None,
) -> list[int]:
    """By how much each answer moves, once noise of the law that was charged is added to it.

    Parameters
    ----------
    rest : iterator of pairs of events
    law : LatticeNoise or GaussianNoise
    refined_from : LatticeNoise, optional
        The law of the noise that this one has to be refined from.
    """
    laws = (law,) if refined_from is None else (refined_from, law)
    drawn, (one, other) = _next(rest, Drawn), _next(rest, Added)
    if {run.laws for run in drawn} != {laws} or {run.law for run in (one, other)} != {law}:
        raise Convicted("noise", "another law than the charge says")
    for run, noise in zip((one, other), drawn, strict=True):
        if run.noise != noise.noise or len(run.noise) != len(run.exact):
            raise Convicted("noise", "it is not added as it was drawn")
        steps = [(exact << law.lattice_bits) + step
                 for exact, step in zip(run.exact, run.noise, strict=True)]  # fmt: skip
        if any(
            max(abs(step), abs(told)) < CLAMPED and step != told
            for step, told in zip(steps, run.released, strict=True)
        ):
            raise Convicted("noise", "a release is not its answer and its noise")
    return [abs(a - b) for a, b in zip(one.exact, other.exact, strict=True)]


def _rho(noise: GaussianNoise, moved: Sequence[int]) -> Fraction:
    squared = sum(step * step for step in moved)
    return noise.rho.exact * squared / noise.sensitivity**2


def _choice_loss(one: Chosen, other: Chosen, weight: Weight) -> Fraction:
    """How much more or less probable the choice is; in floats."""
    for run in (one, other):
        if run.weight != weight:
            raise Convicted("noise", "a choice at another weight than its charge's")

    def log_chance(run: Chosen) -> float:
        rate = float(run.weight.exact) / (2 * run.delta)
        exponents = np.array([rate * (score - max(run.scores)) for score in run.scores])
        return float(exponents[one.place] - np.logaddexp.reduce(exponents))

    found = abs(log_chance(one) - log_chance(other))
    moved = max(abs(a - b) for a, b in zip(one.scores, other.scores, strict=True))
    if moved > one.delta:
        raise Convicted("choice", "a score moves by more than its sensitivity")
    return Fraction(found)


def _check_reads(one: Read, other: Read, rows_per_unit: int) -> None:
    """Raise Convicted unless counts differ by the rows of one unit."""
    gone, come = one.counts - other.counts, other.counts - one.counts
    if one.is_of_units:
        units = {pair[-2] for pair in (gone | come)}
        if len(units) > 1 or sum((gone + come).values()) > rows_per_unit:
            raise Convicted("units", "the cells of other units move, or too many of one")
    elif sum((gone + come).values()) > rows_per_unit:
        raise Convicted("rows", f"more than {rows_per_unit} rows move")


def _public(event: Event) -> object:
    """What is public of an event: what a run on any other table would do as well."""
    match event:
        case Charged(table, rows, charge):
            return "charge", table, rows, canonical_json(write_charge(charge))
        case Read(grouping, _, is_of_units):
            return "read", grouping, is_of_units
        case Drawn(laws, noise):
            return "draw", laws, len(noise)
        case Added(law, _, exact, _):
            return "add", law, len(exact)
        case Chosen(scores, delta, weight, _):
            return "choose", len(scores), delta, weight


@contextmanager
def _watched(recorder: _Recorder) -> Iterator[None]:
    """Watch the places where private values are; the product's own code does all the work."""
    with ExitStack() as stack:

        def watch(owner: Any, name: str, watched: Callable[[_Recorder, Any], Any]) -> None:
            inner = getattr(owner, name)
            stack.enter_context(mock.patch.object(owner, name, watched(recorder, inner)))

        watch(Release, "_read_and_add_noise", _charges)
        watch(release, "_read", _reads)
        watch(release, "_read_units", _unit_reads)
        watch(OnLattice, "on_lattice", _additions)
        watch(exponential_mechanism, "exponential", _choices)
        for name in ("discrete_laplace", "refined_laplace", "discrete_gaussian"):
            watch(SystemNoise, name, _draws)
        yield


def _charges(recorder: _Recorder, inner: Any) -> Any:
    def read_and_add_noise(self: Release, source: Any, charge: Charge, known: Any) -> Any:
        recorder.note(Charged(self.schema.table, self.schema.rows_per_unit_max, charge))
        return inner(self, source, charge, known)

    return read_and_add_noise


def _reads(recorder: _Recorder, inner: Any) -> Any:
    def read(source: Any, grouping: Grouping) -> CellCounts:
        found: CellCounts = inner(source, grouping)
        rows = zip(*(column.tolist() for column in (*found.levels, found.counts)), strict=True)
        counts: Counter[Numbers] = Counter()
        for row in rows:
            counts[row[:-1]] += row[-1]
        recorder.note(Read(grouping.content, counts, is_of_units=False))
        return found

    return read


def _unit_reads(recorder: _Recorder, inner: Any) -> Any:
    def read_units(source: Any, grouping: Grouping) -> UnitCells:
        found: UnitCells = inner(source, grouping)
        columns = (*found.levels, found.digests, found.were_cut)  # numbers of units are arbitrary
        counts = Counter(zip(*(column.tolist() for column in columns), strict=True))
        recorder.note(Read(grouping.content, counts, is_of_units=True))
        return found

    return read_units


def _additions(recorder: _Recorder, inner: Any) -> Any:
    def on_lattice(
        self: OnLattice, exact: Sequence[int], noise: Sequence[int], answer_bound: int
    ) -> Numbers:
        released: Numbers = inner(self, exact, noise, answer_bound)
        told = recorder.note(Added(self, tuple(noise), tuple(exact), released))
        assert isinstance(told, Added)
        return told.released

    return on_lattice


def _choices(recorder: _Recorder, inner: Any) -> Any:
    def exponential(scores: Sequence[int], delta: int, weight: Weight) -> int:
        place: int = inner(scores, delta, weight)
        told = recorder.note(Chosen(list(scores), delta, weight, place))
        assert isinstance(told, Chosen)
        return told.place

    return exponential


def _draws(recorder: _Recorder, inner: Any) -> Any:
    def draw(self: SystemNoise, *arguments: Any) -> Numbers:
        laws = tuple(one for one in arguments if isinstance(one, OnLattice))
        drawn = Drawn(laws, inner(self, *arguments))
        told = recorder.note(drawn)
        assert isinstance(told, Drawn)
        drawn.noise = told.noise
        return drawn.noise

    return draw
