"""The text of ledger entries: each body as canonical JSON, and back.

The result of `read` is checked for types, and each value checks itself; whether entries agree with
each other is checked in table_history.py.
"""

import dataclasses
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from accountant.ledger.credentials import Credential, Proof, Role, SealedVerifier
from accountant.ledger.entries import (
    AccessGranted,
    AccessRevoked,
    Body,
    BudgetJoined,
    BudgetSet,
    Charge,
    ChargedBlock,
    ChargedChoice,
    ChargedDistance,
    ChargedGaussian,
    ChargedStatistic,
    DataPinned,
    LimitSet,
    Measured,
    Served,
    TableDeclared,
    TableOpened,
    TakenOver,
    Tally,
)
from accountant.ledger.ledger_events import ClockCorrected, RollbackAccepted
from accountant.ledger.limits import Limit, Payer, Subject, Window
from accountant.noise.gaussian import GaussianNoise, sensitivity_of
from accountant.noise.laplace import LatticeNoise
from accountant.noise.lattice import LATTICE_BITS_MAX, OnLattice
from cube.encoding import (
    canonical_json,
    decode_block,
    decode_statistic,
    encode_block,
    encode_statistic,
)
from cube.gaussian import GaussianCounts
from cube.gaussian_terms import GaussianTerms, Precision, Rho
from cube.measurement import Weight
from cube.rows_by_level import RowsByLevel
from cube.statistic import Choice

Fields = dict[str, Any]


def write(body: Body) -> tuple[str, str]:
    """The kind and the JSON text of an entry."""
    kind, encode = _WRITERS[type(body)]
    return kind, canonical_json(encode(body))


def read(kind: str, fields: Fields) -> Body:
    """The entry that `write` wrote.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the fields are not such an entry.
    """
    if kind not in _READERS:
        raise ValueError(f"an entry of unknown kind {kind!r}")
    return _READERS[kind](fields)


def read_text(kind: str, text: str) -> Body:
    """The same, of the JSON text of an entry."""
    fields = json.loads(text)
    if not isinstance(fields, dict):
        raise TypeError(f"expected an object, found {type(fields).__name__}")
    return read(kind, fields)


def _write_opened(body: TableOpened) -> Fields:
    encoded: Fields = {
        "schema_digest": body.schema_digest,
        "data_fingerprint": body.data_fingerprint,
        "budget": str(body.budget),
    }
    if body.rows_fingerprint is not None:
        encoded["rows_fingerprint"] = body.rows_fingerprint
    if body.rows_per_unit > 1:
        encoded["rows_per_unit"] = body.rows_per_unit
    if body.rows_per_unit_by is not None:
        encoded["rows_per_unit_by"] = body.rows_per_unit_by.declaration
    if body.shared_budget:
        encoded["shared_budget"] = body.shared_budget
    return encoded


def _read_opened(fields: Fields) -> TableOpened:
    return TableOpened(
        _typed(fields["schema_digest"], str),
        _typed(fields["data_fingerprint"], str),
        Fraction(_typed(fields["budget"], str)),
        _typed(fields["rows_fingerprint"], str) if "rows_fingerprint" in fields else None,
        _typed(fields.get("rows_per_unit", 1), int),
        _typed(fields.get("shared_budget", ""), str),
        RowsByLevel.declared(_typed(fields.get("rows_per_unit_by", {}), dict)),
    )


def _write_limit(body: LimitSet) -> Fields:
    limit = body.limit
    return {
        "for": str(limit.subject),
        "epsilon": None if limit.epsilon is None else str(limit.epsilon),
        "window": limit.window.value,
        "per_query": None if limit.per_query is None else str(limit.per_query),
        "by": body.by,
    }


def _read_limit(fields: Fields) -> LimitSet:
    def epsilon(name: str) -> Fraction | None:
        value = fields[name]
        return None if value is None else Fraction(_typed(value, str))

    limit = Limit(
        Subject.parse(_typed(fields["for"], str)),
        epsilon("epsilon"),
        Window(_typed(fields["window"], str)),
        epsilon("per_query"),
    )
    return LimitSet(limit, _typed(fields["by"], str))


def _write_charge(body: Charge) -> Fields:
    encoded: Fields = {
        "analyst": body.payer.analyst,
        "blocks": [_write_charged(charged) for charged in body.blocks],
        "units_before": body.units_before,
        "units_after": body.units_after,
    }
    if body.payer.groups:
        encoded["groups"] = list(body.payer.groups)
    if body.statistics:
        encoded["statistics"] = [_write_statistic(charged) for charged in body.statistics]
    if body.terms is not None:
        encoded["normal"] = {"delta": str(body.terms.delta), "order": str(body.terms.order)}
    return encoded


def _read_charge(fields: Fields) -> Charge:
    groups = tuple(_typed(name, str) for name in fields.get("groups", ()))
    return Charge(
        Payer(_typed(fields["analyst"], str), groups),
        tuple(_read_charged(charged) for charged in fields["blocks"]),
        _typed(fields["units_before"], int),
        _typed(fields["units_after"], int),
        tuple(_read_statistic(charged) for charged in fields.get("statistics", ())),
        _read_terms(fields["normal"]) if "normal" in fields else None,
    )


def _read_terms(fields: Fields) -> GaussianTerms:
    return GaussianTerms(
        Fraction(_typed(fields["delta"], str)), Fraction(_typed(fields["order"], str))
    )


def _write_charged(charged: ChargedBlock) -> Fields:
    noise = charged.noise
    paid = (
        _write_noise(noise)
        if isinstance(noise, LatticeNoise)
        else {"precision_units": charged.precision.units, **_write_lattice(noise)}
    )
    encoded: Fields = {"block": encode_block(charged.block), **paid}
    if charged.raised_from is not None:
        encoded["raised_from"] = charged.raised_from
    return encoded


def _read_charged(fields: Fields) -> ChargedBlock:
    is_gaussian = "precision_units" in fields
    return ChargedBlock(
        decode_block(fields["block"]),
        _read_precise_noise(fields) if is_gaussian else _read_noise(fields),
        _typed(fields["raised_from"], int) if "raised_from" in fields else None,
    )


def _write_statistic(charged: ChargedStatistic) -> Fields:
    if isinstance(charged, ChargedDistance):
        return {**encode_statistic(charged.distance), **_write_noise(charged.noise)}
    if isinstance(charged, ChargedGaussian):
        return {
            **encode_statistic(charged.statistic),
            "rho_units": charged.noise.rho.units,
            **_write_lattice(charged.noise),
        }
    return {**encode_statistic(charged.choice), "weight_units": charged.weight.units}


def _read_statistic(fields: Fields) -> ChargedStatistic:
    statistic = decode_statistic(fields)
    if isinstance(statistic, Choice):
        return ChargedChoice(statistic, Weight(_typed(fields["weight_units"], int)))
    if "rho_units" in fields or isinstance(statistic, GaussianCounts):
        noise = GaussianNoise(
            Rho(_typed(fields["rho_units"], int)), sensitivity_of(statistic), *_read_lattice(fields)
        )
        return ChargedGaussian(statistic, noise)
    charged = ChargedDistance(statistic, _read_noise(fields))
    charged.costing  # noqa: B018 - checks that the rows are whole and have no constant
    return charged


def _write_noise(noise: LatticeNoise) -> Fields:
    return {"weight_units": noise.weight.units, **_write_lattice(noise)}


def _write_lattice(noise: OnLattice) -> Fields:
    return {
        "lattice_bits": noise.lattice_bits,
        # Hexadecimal: the scale of the noise, to the last bit.
        "noise_scale": noise.noise_scale.hex(),
    }


def _read_noise(fields: Fields) -> LatticeNoise:
    return LatticeNoise(Weight(_typed(fields["weight_units"], int)), *_read_lattice(fields))


def _read_precise_noise(fields: Fields) -> GaussianNoise:
    return GaussianNoise(
        Precision(_typed(fields["precision_units"], int)), 1, *_read_lattice(fields)
    )


def _read_lattice(fields: Fields) -> tuple[int, float]:
    lattice_bits = _typed(fields["lattice_bits"], int)
    if not 0 <= lattice_bits <= LATTICE_BITS_MAX:
        raise ValueError(f"a lattice of {lattice_bits} bits")
    scale = float.fromhex(_typed(fields["noise_scale"], str))
    return lattice_bits, math.ldexp(scale, lattice_bits)


def _write_measured(body: Measured) -> Fields:
    encoded: Fields = {
        "charge": body.charge,
        "lattice_values": [list(row) for row in body.lattice_values],
    }
    if body.turn:
        encoded["turn"] = body.turn
    if body.released:
        encoded["released"] = list(body.released)
    return encoded


def _read_measured(fields: Fields) -> Measured:
    values = tuple(tuple(_typed(value, int) for value in row) for row in fields["lattice_values"])
    released = tuple(_typed(number, int) for number in fields.get("released", ()))
    turn = _typed(fields.get("turn", 0), int)
    return Measured(_typed(fields["charge"], int), values, turn, released)


_TALLY_NUMBERS: Final = ("n_free", "n_paid", "plain_units_free", "plain_units_paid")


def _write_served(body: Served) -> Fields:
    tallies = [
        {
            "analyst": tally.analyst,
            "widths": list(tally.widths),
            **{name: getattr(tally, name) for name in _TALLY_NUMBERS},
        }
        for tally in body.tallies
    ]
    return {"since": body.since, "tallies": tallies}


def _read_served(fields: Fields) -> Served:
    tallies = tuple(
        Tally(
            analyst=_typed(tally["analyst"], str),
            widths=tuple(_typed(count, int) for count in tally["widths"]),
            **{name: _typed(tally[name], int) for name in _TALLY_NUMBERS},
        )
        for tally in fields["tallies"]
    )
    return Served(_typed(fields["since"], str), tallies)


def _write_granted(body: AccessGranted) -> Fields:
    credential = body.credential
    encoded: Fields = {
        "id": credential.id,
        "analyst": credential.payer.analyst,
        "groups": list(credential.payer.groups),
        "role": credential.role.value,
        "tables": list(credential.tables),
        "proof": credential.proof.value,
        "shown_as": credential.shown_as,
        "expires": credential.expires,
        "by": body.by,
    }
    if credential.verifier is not None:
        encoded["scram"] = dataclasses.asdict(credential.verifier)
    return encoded


def _read_granted(fields: Fields) -> AccessGranted:
    expires = fields["expires"]
    credential = Credential(
        id=_typed(fields["id"], str),
        payer=Payer(
            _typed(fields["analyst"], str),
            tuple(_typed(name, str) for name in fields["groups"]),
        ),
        role=Role(_typed(fields["role"], str)),
        tables=tuple(_typed(name, str) for name in fields["tables"]),
        proof=Proof(_typed(fields["proof"], str)),
        shown_as=_typed(fields["shown_as"], str),
        expires=None if expires is None else _typed(expires, str),
        verifier=_read_verifier(fields["scram"]) if "scram" in fields else None,
    )
    return AccessGranted(credential, _typed(fields["by"], str))


def _read_verifier(fields: Fields) -> SealedVerifier:
    return SealedVerifier(_typed(fields["stored_key"], str), _typed(fields["server_key"], str))


def _write_rollback(body: RollbackAccepted) -> Fields:
    return {
        "vouched_entries": body.vouched_entries,
        "vouched_digest": body.vouched_digest,
        "found_entries": body.found_entries,
        "found_digest": body.found_digest,
        "by": body.by,
    }


def _read_rollback(fields: Fields) -> RollbackAccepted:
    entries, digest = fields["vouched_entries"], fields["vouched_digest"]
    return RollbackAccepted(
        None if entries is None else _typed(entries, int),
        None if digest is None else _typed(digest, str),
        _typed(fields["found_entries"], int),
        _typed(fields["found_digest"], str),
        _typed(fields["by"], str),
    )


def _typed(value: Any, expected: type[Any]) -> Any:
    if type(value) is not expected:  # bool is an int to isinstance, but not here
        raise TypeError(f"expected {expected.__name__}, found {type(value).__name__}")
    return value


_WRITERS: Final[dict[type[Any], tuple[str, Callable[[Any], Fields]]]] = {
    TableOpened: ("table_opened", _write_opened),
    DataPinned: ("data_pinned", lambda body: {"rows_fingerprint": body.rows_fingerprint}),
    TableDeclared: ("table_declared", lambda body: {"declaration": body.declaration}),
    BudgetSet: ("budget_set", lambda body: {"budget": str(body.budget)}),
    BudgetJoined: ("budget_joined", lambda body: {"shared_budget": body.shared_budget}),
    LimitSet: ("limit_set", _write_limit),
    Charge: ("charge", _write_charge),
    TakenOver: ("taken_over", lambda body: {"charge": body.charge}),
    Measured: ("measurement", _write_measured),
    Served: ("served", _write_served),
    AccessGranted: ("access_granted", _write_granted),
    AccessRevoked: ("access_revoked", lambda body: {"id": body.credential_id, "by": body.by}),
    RollbackAccepted: ("rollback_accepted", _write_rollback),
    ClockCorrected: ("clock_corrected", lambda body: {"was": body.was, "by": body.by}),
}
_READERS: Final[dict[str, Callable[[Fields], Body]]] = {
    "table_opened": _read_opened,
    "data_pinned": lambda fields: DataPinned(_typed(fields["rows_fingerprint"], str)),
    "table_declared": lambda fields: TableDeclared(_typed(fields["declaration"], str)),
    "budget_set": lambda fields: BudgetSet(Fraction(_typed(fields["budget"], str))),
    "budget_joined": lambda fields: BudgetJoined(_typed(fields["shared_budget"], str)),
    "limit_set": _read_limit,
    "charge": _read_charge,
    "taken_over": lambda fields: TakenOver(_typed(fields["charge"], int)),
    "measurement": _read_measured,
    "served": _read_served,
    "access_granted": _read_granted,
    "access_revoked": lambda fields: AccessRevoked(
        _typed(fields["id"], str), _typed(fields["by"], str)
    ),
    "rollback_accepted": _read_rollback,
    "clock_corrected": lambda fields: ClockCorrected(
        _typed(fields["was"], str), _typed(fields["by"], str)
    ),
}
