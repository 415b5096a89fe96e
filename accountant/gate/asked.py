"""What one ledger asks of another, and is told: noisy rows of a table that the other protects.

The coordinator of a federated table asks; the holder charges, measures, and tells. Noise is drawn
by the holder, so nothing that leaves it is exact:

    Asked    rows and statistics, each with the noise that it is to get, under one reference
    Told     the noisy values in lattice steps, and where the holder's ledger records them

Both are JSON values, those of a ledger's entries. A holder believes no price that it is told: it
computes the price from the rows (pricing.py), and draws noise only of the scales that it would
choose itself for the weights. Gaussian noise is asked for by its rho or its precision, without
terms: the holder accounts for it on its own, and has none drawn unless its owner offers a delta.
Proof: proofs/federation.md.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Protocol, runtime_checkable
from urllib.parse import quote, unquote

from accountant.exact import answer_bound
from accountant.gate.pricing import check_fits, check_statistic
from accountant.ledger import (
    Charge,
    ChargedBlock,
    ChargedChoice,
    ChargedDistance,
    ChargedGaussian,
    ChargedStatistic,
    ChargedUnitCount,
    check_reference,
    read_charged,
    read_statistic,
    typed,
    write_charged,
    write_statistic,
)
from accountant.ledger.history import TableHistory, name_of
from accountant.noise import (
    SCALE_IN_STEPS_MIN,
    GaussianNoise,
    LatticeNoise,
    rounded_up,
    sensitivity_of,
)
from cube.encoding import canonical_json
from cube.measurement import GaussianTerms, PlannedMeasurement, Precision
from cube.refusals import InvalidRequest
from cube.schema import Schema
from cube.statistic import Asked as AskedByAnalyst
from cube.statistic import Distance, PlannedGaussian, PlannedStatistic, PlannedUnitCount

VALUE_MAX: Final = 2**63 - 1  # of a noisy value: what the clamp of the noise leaves
N_BLOCKS_MAX: Final = 2**13  # of one request; each takes a tenth of a millisecond and more
N_ROWS_MAX: Final = 2**20  # of one request, in all of its blocks
N_STATISTICS_MAX: Final = 2**12
N_NUMBERS_MAX: Final = 2**25  # in all arrays of one request, once they are written out
_BY_REFERENCE: Final = "a request names what it raises by a reference"
_BROKEN: Final = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


@dataclass(frozen=True, slots=True)
class Raised:
    """What was measured before: under which reference, and in which place among its rows.

    Of a count of units, in which place among the counts of units.
    """

    reference: str
    place: int


@dataclass(frozen=True, slots=True, eq=False)
class AskedRows:
    """Rows of the holder's table, the noise that they are to get, and what they raise."""

    charged: ChargedBlock
    raised: Raised | None = None


@dataclass(frozen=True, slots=True, eq=False)
class AskedStatistic:
    """A statistic of the holder's table, the noise that it is to get, and what it raises."""

    charged: ChargedStatistic
    raised: Raised | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A request.

    Parameters
    ----------
    reference : str
        Its name. Asked again under the same name, a holder tells what it told.
    generation : str
        The state of the holder's table on which it was agreed (`identity_of`).
    rows : tuple of AskedRows
    statistics : tuple of AskedStatistic
        Distances, with noise of either kind, choices and counts of units.
    """

    reference: str
    generation: str
    rows: tuple[AskedRows, ...]
    statistics: tuple[AskedStatistic, ...] = ()

    @property
    def text(self) -> str:
        """The request as JSON text."""
        rows = [write_charged(one.charged) | _write_raised(one.raised) for one in self.rows]
        statistics = [
            write_statistic(one.charged) | _write_raised(one.raised) for one in self.statistics
        ]
        return canonical_json(
            {
                "reference": self.reference,
                "generation": self.generation,
                "rows": rows,
                "statistics": statistics,
            }
        )

    def is_for(self, charge: Charge) -> bool:
        """Whether a charge is for what is asked, whatever it raises."""
        alone = (ChargedBlock(one.block, one.noise) for one in charge.blocks)
        statistics = (
            ChargedUnitCount(one.count, one.noise) if isinstance(one, ChargedUnitCount) else one
            for one in charge.statistics
        )
        charged = [*map(write_charged, alone), *map(write_statistic, statistics)]
        asked = [write_charged(one.charged) for one in self.rows]
        return charged == [*asked, *(write_statistic(one.charged) for one in self.statistics)]

    @classmethod
    def read(cls, text: str) -> "Asked":
        """The request with this text.

        Raises
        ------
        InvalidRequest
            If it is no such text, or asks for too much at once.
        """
        try:
            return cls._read(json.loads(text))
        except _BROKEN as error:
            raise InvalidRequest(
                "The request for noisy rows is damaged: no charge was made.",
                hint="Use the same release of Tacit at the coordinator and at the holder.",
            ) from error

    @classmethod
    def _read(cls, fields: Any) -> "Asked":
        reference = typed(fields["reference"], str)
        check_reference(reference)
        if len(fields["statistics"]) > N_STATISTICS_MAX or len(fields["rows"]) > N_BLOCKS_MAX:
            raise ValueError("too much is asked at once")
        if _n_numbers(fields) > N_NUMBERS_MAX:  # a short text may stand for very many
            raise ValueError("too large arrays are asked for at once")
        rows = tuple(_read_rows(one) for one in fields["rows"])
        statistics = tuple(_read_asked_statistic(one) for one in fields["statistics"])
        n_rows = sum(one.charged.block.n_rows for one in rows)
        if n_rows + sum(one.charged.n_released for one in statistics) > N_ROWS_MAX:
            raise ValueError("too many rows are asked for at once")
        return cls(reference, typed(fields["generation"], str), rows, statistics)


def _n_numbers(fields: Any) -> int:
    """How many numbers all different arrays of a request have."""
    arrays: dict[str, int] = {}
    todo = [fields]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            if "shape" in one:
                arrays[canonical_json(one)] = math.prod(
                    abs(typed(size, int)) for size in one["shape"]
                )
            todo += one.values()
        elif isinstance(one, list):
            todo += one
    return sum(arrays.values())


def _read_rows(fields: Any) -> AskedRows:
    charged = read_charged(fields)
    if charged.raised_from is not None:
        raise ValueError(_BY_REFERENCE)
    return AskedRows(charged, _read_raised(fields))


def _read_asked_statistic(fields: Any) -> AskedStatistic:
    charged, raised = read_statistic(fields), _read_raised(fields)
    if isinstance(charged, ChargedUnitCount):
        if charged.raised_from is not None:
            raise ValueError(_BY_REFERENCE)
    elif raised is not None:
        raise ValueError("no statistic but a count of units is raised")
    return AskedStatistic(charged, raised)


def _write_raised(raised: Raised | None) -> dict[str, Any]:
    return {} if raised is None else {"raises": [raised.reference, raised.place]}


def _read_raised(fields: Any) -> Raised | None:
    if "raises" not in fields:
        return None
    reference, place = fields["raises"]
    return Raised(typed(reference, str), typed(place, int))


@dataclass(frozen=True, slots=True)
class Told:
    """What a holder tells.

    Parameters
    ----------
    values : tuple of tuple of int
        The noisy values of each of the rows, in lattice steps.
    released : tuple of int
        The released numbers of the statistics.
    entry : int
        The number of the charge in the holder's ledger.
    head_entry, head : int and str
        Up to where that ledger was read then, and the digest of the last entry.
    units : int
        What the charge added to the cost of the holder's table, in units of 2**-40 epsilon.
    """

    values: tuple[tuple[int, ...], ...]
    released: tuple[int, ...]
    entry: int
    head_entry: int
    head: str
    units: int

    @property
    def text(self) -> str:
        """The same as JSON text."""
        return canonical_json(
            {
                "values": [list(one) for one in self.values],
                "released": list(self.released),
                "entry": self.entry,
                "head_entry": self.head_entry,
                "head": self.head,
                "units": self.units,
            }
        )

    @classmethod
    def read(cls, text: str) -> "Told":
        """What has this text; ValueError if nothing has."""
        try:
            fields = json.loads(text)
            return cls(
                tuple(_numbers(one) for one in fields["values"]),
                _numbers(fields["released"]),
                typed(fields["entry"], int),
                typed(fields["head_entry"], int),
                typed(fields["head"], str),
                typed(fields["units"], int),
            )
        except _BROKEN as error:
            raise ValueError("the reply of a holder is damaged") from error


def _numbers(values: Sequence[Any]) -> tuple[int, ...]:
    found = tuple(typed(one, int) for one in values)
    if any(abs(one) > VALUE_MAX for one in found):
        raise ValueError("a noisy value has more than 64 bits")
    return found


@runtime_checkable
class RemoteGates(Protocol):
    """The gates of the holders of a federated table: a source that gives noisy rows.

    One call is about one holder. An implementation may later ask several at once and return one
    aggregated reply, so that secure aggregation can be behind it: nothing here would change but
    that the rows of a plan would not tell holders apart.
    """

    def fingerprint(self, key: bytes, like: str = "") -> str:
        """A digest of the names of the holders and of their tables."""
        ...

    def rows_fingerprint(self, key: bytes, like: str = "") -> str:
        """The holders with the state of the table of each, as text.

        Of a holder that cannot be reached, its state in `like` is repeated: it is compared when
        the holder is asked.
        """
        ...

    def generation(self, level: int) -> str:
        """The state of a holder's table on which everything is agreed."""
        ...

    def left(self) -> list[Fraction | None]:
        """What each holder's budget and limits leave this ledger now, all asked at once.

        None for one that cannot be asked.
        """
        ...

    def check(self, level: int, asked: Asked) -> None:
        """Find out whether a holder would charge for this now. Charges nothing.

        Raises
        ------
        Refused
            As the holder refuses it; the message names the holder.
        SourceUnavailable
            If it cannot be reached, or has another table than was agreed.
        """
        ...

    def measure(self, level: int, asked: Asked) -> Told:
        """Have a holder charge and measure; what it tells, perhaps again.

        Raises
        ------
        Refused
            As the holder refuses it: it has not charged, and will not.
        SourceUnavailable
            If it cannot be reached, or answers with nonsense: it may have charged, and is to be
            asked again.
        """
        ...


def written_states(states: Mapping[str, str]) -> str:
    """Holders with the state of the table of each, in their order, as text.

    >>> written_states({"north": "a:1", "sør": "b:2"})
    'north=a:1;s%C3%B8r=b:2'
    """
    return ";".join(f"{quote(name, safe='')}={state}" for name, state in states.items())


def states_in(text: str) -> dict[str, str]:
    """The states of holders by their names; empty if the text has none.

    >>> states_in("north=a:1;s%C3%B8r=b:2")
    {'north': 'a:1', 'sør': 'b:2'}
    """
    pairs = (one.rpartition("=") for one in text.split(";"))
    return {unquote(name): state for name, equals, state in pairs if equals}


@dataclass(frozen=True, slots=True, eq=False)
class PlannedForOther:
    """What a holder pays for a request: the plan to price, and what to charge for it."""

    plan: list[PlannedMeasurement]
    rows: tuple[ChargedBlock, ...]
    asked: list[AskedByAnalyst]
    statistics: tuple[ChargedStatistic, ...]


def planned_for(
    asked: Asked,
    analyst: str,
    history: TableHistory,
    schema: Schema,
    terms: GaussianTerms | None = None,
) -> PlannedForOther:
    """What a holder pays for a request.

    Parameters
    ----------
    asked : Asked
    analyst : str
        Who pays.
    history : TableHistory
    schema : Schema
    terms : GaussianTerms, optional
        For the table's first Gaussian noise; None if its owner offers no delta.

    Notes
    -----
    A raise refines noise of a measurement for the same payer, unless somebody else has raised it
    meanwhile. Then the row gets noise that is drawn anew, on the same lattice: it
    costs the whole weight, and is worth as much. A raise with Gaussian noise is another value in
    either case, at the price of that value.

    Raises
    ------
    InvalidRequest
        If it asks for noise of another scale than its weight has, for noise that is not offered,
        for Gaussian noise without a delta, or for rows of another table.
    TooLarge
        If a row cannot be measured at its weight.
    """
    if terms is None and _is_gaussian(asked):
        raise InvalidRequest(
            f"{schema.table} has no Gaussian noise, as it is declared without a delta there. "
            "The owner of that table has to declare a delta.",
            hint="Or the coordinator declares none: then it asks for Laplace noise.",
        )
    try:
        rows = [_charged_for(one, analyst, history) for one in asked.rows]
        statistics = tuple(_statistic_for(one, analyst, history) for one in asked.statistics)
        planned = [_planned_statistic(one, history, schema, terms) for one in statistics]
        plan = [_planned_row(one, history, terms) for one in rows]
        for one in rows:
            check_fits(one.block, schema)
            one.noise.lattice_bound(answer_bound(one.block, schema))
        if history.growth is not None:
            history.growth.check_within(
                (one.block for one in rows), (one.statistic for one in statistics)
            )
    except (ValueError, TypeError) as error:
        raise InvalidRequest(
            f"The request does not fit {schema.table}: {error}.",
            hint="The coordinator must declare the columns of the holder's table alike.",
        ) from error
    return PlannedForOther(plan, tuple(rows), planned, statistics)


def _is_gaussian(asked: Asked) -> bool:
    return any(one.charged.is_gaussian for one in asked.rows) or any(
        isinstance(one.charged, ChargedGaussian) for one in asked.statistics
    )


def _charged_for(asked: AskedRows, analyst: str, history: TableHistory) -> ChargedBlock:
    charged, noise = asked.charged, asked.charged.noise
    _check_noise(noise)
    if asked.raised is None:
        return charged
    place = _place_of(asked.raised, analyst, history, history.paid_by)
    if place in history.superseded:
        return charged
    raised = ChargedBlock(charged.block, noise, place)
    if isinstance(noise, LatticeNoise):
        planned = PlannedMeasurement(charged.block, noise.weight, place)
        if history.raises.laplace_noise_for(planned) != noise:
            raise ValueError("the noise of a raise is not on the lattice of the earlier noise")
    return raised


def _planned_row(
    charged: ChargedBlock, history: TableHistory, terms: GaussianTerms | None
) -> PlannedMeasurement:
    """Rows to price: a raise with Gaussian noise adds a value to the earlier ones."""
    block, place = charged.block, charged.raised_from
    if not charged.is_gaussian:
        return PlannedMeasurement(block, charged.laplace_noise.weight, place)
    precision = charged.precision
    if place is not None:
        held = history.measurements[place]
        if not held.is_gaussian:
            raise ValueError("a measurement is raised with noise of another kind")
        precision = Precision(held.precision.units + precision.units)
    planned = PlannedMeasurement(block, precision, place, terms)
    history.raises.noise_for(planned)  # raises ValueError unless it may be raised
    return planned


def _check_noise(noise: LatticeNoise | GaussianNoise, sensitivity: int = 1) -> None:
    """Raise ValueError unless a holder would draw this noise for what is paid.

    Laplace noise may have another lattice; Gaussian noise has that of its rho.
    """
    if isinstance(noise, GaussianNoise):
        if noise != GaussianNoise.for_rho(noise.rho, sensitivity):
            raise ValueError("the scale of the noise is not that of its rho")
        return
    scale = rounded_up(2**noise.lattice_bits / noise.weight.exact)
    if noise != LatticeNoise(noise.weight, noise.lattice_bits, scale):
        raise ValueError("the scale of the noise is not that of its weight")
    if noise.scale_in_steps <= SCALE_IN_STEPS_MIN:
        raise ValueError("the lattice is too coarse for the noise")


def _place_of(raised: Raised, analyst: str, history: TableHistory, paid_by: Sequence[int]) -> int:
    """The place of what is raised, among all that were paid by some charges; ValueError if none."""
    seq = history.for_others.charges.get((analyst, raised.reference))
    first = next((place for place, by in enumerate(paid_by) if by == seq), None)
    if first is not None and raised.place >= 0:
        place = first + raised.place
        if place < len(paid_by) and paid_by[place] == seq:
            return place
    raise ValueError("it raises what was not measured for this ledger")


def _statistic_for(asked: AskedStatistic, analyst: str, history: TableHistory) -> ChargedStatistic:
    """A statistic to charge; ValueError if its noise is not what the weight buys."""
    charged = asked.charged
    if isinstance(charged, ChargedDistance):
        if charged.noise != LatticeNoise.for_weight(charged.noise.weight):
            raise ValueError("the noise of a distance is not that of its weight")
        return charged
    if isinstance(charged, ChargedChoice):
        return charged
    if isinstance(charged, ChargedGaussian) and isinstance(charged.statistic, Distance):
        _check_noise(charged.noise, sensitivity_of(charged.statistic))
        return charged
    if not isinstance(charged, ChargedUnitCount):
        raise ValueError(  # noqa: TRY004 - what was sent is wrong
            "only rows, distances, choices and counts of units can be asked of a holder"
        )
    _check_noise(charged.noise)
    counts = history.unit_counts
    if asked.raised is None:
        return charged
    place = _place_of(asked.raised, analyst, history, counts.paid_by)
    if counts.names[place] != name_of(charged.count):
        raise ValueError("it raises a count of units with other groups")
    if place in counts.superseded:
        return charged
    if counts.noise_for(PlannedUnitCount(charged.count, charged.noise.weight, place)) != (
        charged.noise
    ):
        raise ValueError("the noise of a raise is not on the lattice of the earlier noise")
    return ChargedUnitCount(charged.count, charged.noise, place)


def _planned_statistic(
    charged: ChargedStatistic, history: TableHistory, schema: Schema, terms: GaussianTerms | None
) -> AskedByAnalyst:
    """A statistic to price, checked as one that an analyst asks for."""
    planned: AskedByAnalyst
    match charged:
        case ChargedDistance(distance, noise):
            planned = PlannedStatistic(distance, noise.weight)
        case ChargedChoice(choice, weight):
            planned = PlannedStatistic(choice, weight)
        case ChargedGaussian(statistic) if terms is not None:
            planned = PlannedGaussian(statistic, charged.rho, terms)
        case ChargedUnitCount(count, noise, place):
            planned = PlannedUnitCount(count, noise.weight, place)
            noise.lattice_bound(answer_bound(count.numbers, schema))
        case _:
            raise TypeError("the statistic was not checked")
    check_statistic(planned, schema, history.unit_counts)
    return planned
