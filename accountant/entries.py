"""What a ledger says: four kinds of entry, each as canonical JSON, chained by their digests.

    table_opened    which schema and which data this table is, and its budget
    budget_set      the owner changed the budget
    charge          rows were paid for: who, what, at which weight, cost before and after;
                    a row that was measured before may be raised, and says from which measurement
    measurement     the noisy values of the rows of one charge

An entry of any other kind makes a ledger unreadable, not half-read.

Entries hold public things and released values only. Nothing here does input or output, or judges
whether entries make sense together (replay.py does).
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from accountant.noise import LATTICE_BITS_MAX, LatticeNoise
from cube.block import QueryBlock
from cube.encoding import canonical_json, decode_block, encode_block
from cube.measurement import Measurement, PlannedMeasurement, Weight

GENESIS = "0" * 64  # what the first entry's digest is chained to


@dataclass(frozen=True, slots=True)
class TableOpened:
    """A table entered the ledger."""

    schema_digest: str
    data_fingerprint: str
    budget: Fraction


@dataclass(frozen=True, slots=True)
class BudgetSet:
    """The owner set another limit; what is spent stays spent."""

    budget: Fraction


@dataclass(frozen=True, slots=True)
class ChargedBlock:
    """Rows that were paid for, and the noise they were paid to get.

    With `raised_from`, the place of an earlier measurement of the block, its noise is refined and
    only the difference of the weights was paid.
    """

    block: QueryBlock
    noise: LatticeNoise
    raised_from: int | None = None

    @property
    def planned(self) -> PlannedMeasurement:
        """The rows and their weight, as the cost sees them."""
        return PlannedMeasurement(self.block, self.noise.weight, self.raised_from)

    def measured(self, lattice_values: tuple[int, ...]) -> Measurement:
        """The measurement that these noisy values complete."""
        return Measurement(
            self.block,
            self.noise.weight,
            self.noise.lattice_bits,
            self.noise.noise_scale,
            lattice_values,
            self.raised_from,
        )


@dataclass(frozen=True, slots=True)
class Charge:
    """A plan was paid for; it may be measured once."""

    analyst: str
    blocks: tuple[ChargedBlock, ...]
    units_before: int
    units_after: int


@dataclass(frozen=True, slots=True)
class Measured:
    """The noisy values of the charge with sequence number `charge`, in lattice steps."""

    charge: int
    lattice_values: tuple[tuple[int, ...], ...]


Body: TypeAlias = TableOpened | BudgetSet | Charge | Measured


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger.

    Parameters
    ----------
    seq : int
        1, 2, 3, ... without gaps.
    at : str
        When, as UTC text. For people; nothing is decided by it.
    kind, table, body : str
        What it says, about which table; `body` is canonical JSON.
    digest : str
        Of the digest before and all the fields: no entry can change without breaking the chain.
    """

    seq: int
    at: str
    kind: str
    table: str
    body: str
    digest: str

    def follows(self, previous_digest: str) -> bool:
        """Whether the digest is right, after `previous_digest`."""
        fields = (self.seq, self.at, self.kind, self.table, self.body)
        return self.digest == chained_digest(previous_digest, fields)


def chained_digest(previous: str, fields: tuple[int, str, str, str, str]) -> str:
    """SHA-256 over the digest before and an entry's fields in order, as hexadecimal text."""
    text = canonical_json([previous, *fields])
    return hashlib.sha256(text.encode()).hexdigest()


def write(body: Body) -> tuple[str, str]:
    """The kind and the JSON text of an entry."""
    match body:
        case TableOpened():
            return "table_opened", canonical_json(_encode_opened(body))
        case BudgetSet():
            return "budget_set", canonical_json({"budget": str(body.budget)})
        case Charge():
            return "charge", canonical_json(_encode_charge(body))
        case Measured():
            values = [list(row) for row in body.lattice_values]
            return "measurement", canonical_json({"charge": body.charge, "lattice_values": values})


def read(kind: str, fields: dict[str, Any]) -> Body:
    """The entry that `write` wrote.

    Raises
    ------
    ValueError, KeyError, TypeError
        If it is no such entry.
    """
    if kind not in _READERS:
        raise ValueError(f"an entry of unknown kind {kind!r}")
    return _READERS[kind](fields)


def _encode_opened(body: TableOpened) -> dict[str, Any]:
    return {
        "schema_digest": body.schema_digest,
        "data_fingerprint": body.data_fingerprint,
        "budget": str(body.budget),
    }


def _encode_charge(body: Charge) -> dict[str, Any]:
    return {
        "analyst": body.analyst,
        "blocks": [_encode_charged(charged) for charged in body.blocks],
        "units_before": body.units_before,
        "units_after": body.units_after,
    }


def _encode_charged(charged: ChargedBlock) -> dict[str, Any]:
    encoded: dict[str, Any] = {
        "block": encode_block(charged.block),
        "weight_units": charged.noise.weight.units,
        "lattice_bits": charged.noise.lattice_bits,
        # Hexadecimal: the scale that was drawn from, to the last bit.
        "noise_scale": charged.noise.noise_scale.hex(),
    }
    if charged.raised_from is not None:
        encoded["raised_from"] = charged.raised_from
    return encoded


def _decode_opened(fields: dict[str, Any]) -> TableOpened:
    return TableOpened(
        _typed(fields["schema_digest"], str),
        _typed(fields["data_fingerprint"], str),
        Fraction(_typed(fields["budget"], str)),
    )


def _decode_charge(fields: dict[str, Any]) -> Charge:
    return Charge(
        _typed(fields["analyst"], str),
        tuple(_decode_charged(charged) for charged in fields["blocks"]),
        _typed(fields["units_before"], int),
        _typed(fields["units_after"], int),
    )


def _decode_charged(fields: dict[str, Any]) -> ChargedBlock:
    lattice_bits = _typed(fields["lattice_bits"], int)
    if not 0 <= lattice_bits <= LATTICE_BITS_MAX:
        raise ValueError(f"a lattice of {lattice_bits} bits")
    scale_in_steps = math.ldexp(float.fromhex(_typed(fields["noise_scale"], str)), lattice_bits)
    weight = Weight(_typed(fields["weight_units"], int))
    charged = ChargedBlock(
        decode_block(fields["block"]),
        LatticeNoise(weight, lattice_bits, scale_in_steps),
        _typed(fields["raised_from"], int) if "raised_from" in fields else None,
    )
    charged.planned  # noqa: B018 - checks that the rows are whole and have no constant
    return charged


def _decode_measured(fields: dict[str, Any]) -> Measured:
    values = tuple(tuple(_typed(value, int) for value in row) for row in fields["lattice_values"])
    return Measured(_typed(fields["charge"], int), values)


def _typed(value: Any, expected: type[Any]) -> Any:
    if type(value) is not expected:  # bool is an int to isinstance, but not here
        raise TypeError(f"expected {expected.__name__}, found {type(value).__name__}")
    return value


_READERS: dict[str, Callable[[dict[str, Any]], Body]] = {
    "table_opened": _decode_opened,
    "budget_set": lambda fields: BudgetSet(Fraction(_typed(fields["budget"], str))),
    "charge": _decode_charge,
    "measurement": _decode_measured,
}
