"""The text of ledger entries: each body as canonical JSON, and back.

For a charge, these are its rows and statistics with their noise. The text of entries about
collections and streams is in collections.py and streams.py.

The result of `read` is checked for types, and each value checks itself; whether entries agree with
each other is checked in history/.
"""

import dataclasses
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from accountant.ledger import collections as of_collections
from accountant.ledger.charged import (
    ChargedBlock,
    ChargedChoice,
    ChargedDistance,
    ChargedGaussian,
    ChargedStatistic,
    ChargedUnitCount,
)
from accountant.ledger.credentials import Credential, Proof, Role, SealedVerifier
from accountant.ledger.entries import (
    AccessGranted,
    AccessRevoked,
    Body,
    BudgetJoined,
    BudgetSet,
    ChangesAccepted,
    Charge,
    ClockCorrected,
    DataPinned,
    GenerationBegun,
    GivenUp,
    HolderReceipt,
    HorizonAdvanced,
    LimitSet,
    Measured,
    Period,
    RollbackAccepted,
    Served,
    TableDeclared,
    TableOpened,
    TakenOver,
    Tally,
)
from accountant.ledger.limits import Limit, Payer, Subject, Window
from accountant.ledger.streams import (
    EpochBegun,
    EpochReleased,
    StreamDropped,
    StreamOpened,
    VisitsReleased,
    read_drop,
    read_epoch,
    read_release,
    read_stream,
    read_visits,
    write_release,
    write_stream,
    write_visits,
)
from accountant.ledger.values import Fields, typed
from accountant.noise import (
    LATTICE_BITS_MAX,
    GaussianNoise,
    LatticeNoise,
    OnLattice,
    sensitivity_of,
)
from cube.encoding import (
    canonical_json,
    decode_block,
    decode_statistic,
    encode_block,
    encode_statistic,
    exact_number,
)
from cube.measurement import GaussianTerms, Precision, Rho, Weight
from cube.schema import RowsByLevel
from cube.statistic import Choice, GaussianCounts, OfUnits


def write_charge(body: Charge) -> Fields:
    """The fields of a charge."""
    encoded: Fields = {
        "analyst": body.payer.analyst,
        "blocks": [write_charged(charged) for charged in body.blocks],
        "units_before": body.units_before,
        "units_after": body.units_after,
    }
    if body.payer.groups:
        encoded["groups"] = list(body.payer.groups)
    if body.statistics:
        encoded["statistics"] = [write_statistic(charged) for charged in body.statistics]
    if body.terms is not None:
        encoded["normal"] = {"delta": str(body.terms.delta), "order": str(body.terms.order)}
    if body.reference:
        encoded["reference"] = body.reference
    return encoded


def read_charge(fields: Fields) -> Charge:
    """The charge that `write_charge` wrote; ValueError, KeyError or TypeError otherwise."""
    groups = tuple(typed(name, str) for name in fields.get("groups", ()))
    return Charge(
        Payer(typed(fields["analyst"], str), groups),
        tuple(read_charged(charged) for charged in fields["blocks"]),
        typed(fields["units_before"], int),
        typed(fields["units_after"], int),
        tuple(read_statistic(charged) for charged in fields.get("statistics", ())),
        _read_terms(fields["normal"]) if "normal" in fields else None,
        typed(fields["reference"], str) if "reference" in fields else "",
    )


def _read_terms(fields: Fields) -> GaussianTerms:
    return GaussianTerms(
        exact_number(typed(fields["delta"], str)), exact_number(typed(fields["order"], str))
    )


def write_charged(charged: ChargedBlock) -> Fields:
    """The fields of charged rows."""
    noise = charged.noise
    paid = (
        _write_noise(noise)
        if isinstance(noise, LatticeNoise)
        else {"precision_units": charged.precision.units, **_write_lattice(noise)}
    )
    return {"block": encode_block(charged.block), **paid, **_write_place(charged.raised_from)}


def _write_place(raised_from: int | None) -> Fields:
    return {} if raised_from is None else {"raised_from": raised_from}


def _read_place(fields: Fields) -> int | None:
    return typed(fields["raised_from"], int) if "raised_from" in fields else None


def read_charged(fields: Fields) -> ChargedBlock:
    """The charged rows that `write_charged` wrote; ValueError, KeyError or TypeError otherwise."""
    is_gaussian = "precision_units" in fields
    return ChargedBlock(
        decode_block(fields["block"]),
        _read_precise_noise(fields) if is_gaussian else _read_noise(fields),
        _read_place(fields),
    )


def write_statistic(charged: ChargedStatistic) -> Fields:
    """The fields of a charged statistic."""
    if isinstance(charged, ChargedDistance):
        return {**encode_statistic(charged.distance), **_write_noise(charged.noise)}
    if isinstance(charged, ChargedGaussian):
        return {
            **encode_statistic(charged.statistic),
            "rho_units": charged.noise.rho.units,
            **_write_lattice(charged.noise),
        }
    if isinstance(charged, ChargedUnitCount):
        place = _write_place(charged.raised_from)
        return {**encode_statistic(charged.count), **_write_noise(charged.noise), **place}
    return {**encode_statistic(charged.choice), "weight_units": charged.weight.units}


def read_statistic(fields: Fields) -> ChargedStatistic:
    """The statistic that `write_statistic` wrote; ValueError, KeyError or TypeError otherwise."""
    statistic = decode_statistic(fields)
    if isinstance(statistic, Choice):
        return ChargedChoice(statistic, Weight(typed(fields["weight_units"], int)))
    if isinstance(statistic, OfUnits):
        return ChargedUnitCount(statistic, _read_noise(fields), _read_place(fields))
    if "rho_units" in fields or isinstance(statistic, GaussianCounts):
        noise = GaussianNoise(
            Rho(typed(fields["rho_units"], int)), sensitivity_of(statistic), *_read_lattice(fields)
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
    return LatticeNoise(Weight(typed(fields["weight_units"], int)), *_read_lattice(fields))


def _read_precise_noise(fields: Fields) -> GaussianNoise:
    return GaussianNoise(
        Precision(typed(fields["precision_units"], int)), 1, *_read_lattice(fields)
    )


def _read_lattice(fields: Fields) -> tuple[int, float]:
    lattice_bits = typed(fields["lattice_bits"], int)
    if not 0 <= lattice_bits <= LATTICE_BITS_MAX:
        raise ValueError(f"a lattice must have 0 to {LATTICE_BITS_MAX} bits, not {lattice_bits}")
    scale = float.fromhex(typed(fields["noise_scale"], str))
    return lattice_bits, math.ldexp(scale, lattice_bits)


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
        raise ValueError(f"the kind of entry {kind!r} is unknown")
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
    if body.grows:
        encoded |= {"grows": body.grows, "grows_levels": body.grows_levels}
    if body.holders:
        encoded["holders"] = body.holders
    return encoded | _write_renewal(body.renews)


def _read_opened(fields: Fields) -> TableOpened:
    return TableOpened(
        typed(fields["schema_digest"], str),
        typed(fields["data_fingerprint"], str),
        exact_number(typed(fields["budget"], str)),
        typed(fields["rows_fingerprint"], str) if "rows_fingerprint" in fields else None,
        typed(fields.get("rows_per_unit", 1), int),
        typed(fields.get("shared_budget", ""), str),
        typed(fields.get("grows", ""), str),
        typed(fields["grows_levels"], int) if "grows" in fields else 0,
        RowsByLevel.declared(typed(fields.get("rows_per_unit_by", {}), dict)),
        _read_renewal(fields),
        typed(fields.get("holders", ""), str),
    )


def _write_budget(body: BudgetSet) -> Fields:
    return {"budget": str(body.budget)} | _write_renewal(body.renews)


def _read_budget(fields: Fields) -> BudgetSet:
    return BudgetSet(exact_number(typed(fields["budget"], str)), _read_renewal(fields))


def _write_renewal(renews: Window) -> Fields:
    return {} if renews is Window.NEVER else {"renews": renews.value}


def _read_renewal(fields: Fields) -> Window:
    return Window(typed(fields.get("renews", Window.NEVER.value), str))


_SPENDING: Final = ("weight_units", "units_before", "units_after")


def _write_advanced(body: HorizonAdvanced) -> Fields:
    return {"periods": [dataclasses.asdict(one) for one in body.periods], "by": body.by}


def _read_advanced(fields: Fields) -> HorizonAdvanced:
    return HorizonAdvanced(_read_periods(fields), typed(fields["by"], str))


def _read_periods(fields: Fields) -> tuple[Period, ...]:
    return tuple(
        Period(
            typed(one["start"], int), typed(one["end"], int), typed(one["rows_fingerprint"], str)
        )
        for one in fields["periods"]
    )


def _read_accepted(fields: Fields) -> ChangesAccepted:
    numbers = {name: typed(fields[name], int) for name in _SPENDING}
    return ChangesAccepted(_read_periods(fields), **numbers, by=typed(fields["by"], str))


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
        return None if value is None else exact_number(typed(value, str))

    limit = Limit(
        Subject.parse(typed(fields["for"], str)),
        epsilon("epsilon"),
        Window(typed(fields["window"], str)),
        epsilon("per_query"),
    )
    return LimitSet(limit, typed(fields["by"], str))


def _write_measured(body: Measured) -> Fields:
    encoded: Fields = {
        "charge": body.charge,
        "lattice_values": [list(row) for row in body.lattice_values],
    }
    if body.turn:
        encoded["turn"] = body.turn
    if body.released:
        encoded["released"] = list(body.released)
    if body.receipt is not None:
        encoded["receipt"] = dataclasses.asdict(body.receipt)
    return encoded


def _read_measured(fields: Fields) -> Measured:
    values = tuple(tuple(typed(value, int) for value in row) for row in fields["lattice_values"])
    released = tuple(typed(number, int) for number in fields.get("released", ()))
    turn = typed(fields.get("turn", 0), int)
    receipt = _read_receipt(fields["receipt"]) if "receipt" in fields else None
    return Measured(typed(fields["charge"], int), values, turn, released, receipt)


def _read_receipt(fields: Fields) -> HolderReceipt:
    return HolderReceipt(
        typed(fields["entry"], int), typed(fields["head_entry"], int), typed(fields["head"], str)
    )


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
            analyst=typed(tally["analyst"], str),
            widths=tuple(typed(count, int) for count in tally["widths"]),
            **{name: typed(tally[name], int) for name in _TALLY_NUMBERS},
        )
        for tally in fields["tallies"]
    )
    return Served(typed(fields["since"], str), tallies)


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
        id=typed(fields["id"], str),
        payer=Payer(
            typed(fields["analyst"], str),
            tuple(typed(name, str) for name in fields["groups"]),
        ),
        role=Role(typed(fields["role"], str)),
        tables=tuple(typed(name, str) for name in fields["tables"]),
        proof=Proof(typed(fields["proof"], str)),
        shown_as=typed(fields["shown_as"], str),
        expires=None if expires is None else typed(expires, str),
        verifier=_read_verifier(fields["scram"]) if "scram" in fields else None,
    )
    return AccessGranted(credential, typed(fields["by"], str))


def _read_verifier(fields: Fields) -> SealedVerifier:
    return SealedVerifier(typed(fields["stored_key"], str), typed(fields["server_key"], str))


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
        None if entries is None else typed(entries, int),
        None if digest is None else typed(digest, str),
        typed(fields["found_entries"], int),
        typed(fields["found_digest"], str),
        typed(fields["by"], str),
    )


def _read_begun(fields: Fields) -> GenerationBegun:
    return GenerationBegun(
        typed(fields["data_fingerprint"], str),
        typed(fields["rows_fingerprint"], str),
        typed(fields["units_before"], int),
        typed(fields["by"], str),
    )


_WRITERS: Final[dict[type[Any], tuple[str, Callable[[Any], Fields]]]] = {
    TableOpened: ("table_opened", _write_opened),
    DataPinned: ("data_pinned", lambda body: {"rows_fingerprint": body.rows_fingerprint}),
    TableDeclared: ("table_declared", lambda body: {"declaration": body.declaration}),
    BudgetSet: ("budget_set", _write_budget),
    BudgetJoined: ("budget_joined", lambda body: {"shared_budget": body.shared_budget}),
    HorizonAdvanced: ("horizon_advanced", _write_advanced),
    ChangesAccepted: ("changes_accepted", dataclasses.asdict),
    GenerationBegun: ("generation_begun", dataclasses.asdict),
    LimitSet: ("limit_set", _write_limit),
    Charge: ("charge", write_charge),
    TakenOver: ("taken_over", lambda body: {"charge": body.charge}),
    Measured: ("measurement", _write_measured),
    GivenUp: ("charge_given_up", lambda body: {"charge": body.charge}),
    Served: ("served", _write_served),
    AccessGranted: ("access_granted", _write_granted),
    AccessRevoked: ("access_revoked", lambda body: {"id": body.credential_id, "by": body.by}),
    RollbackAccepted: ("rollback_accepted", _write_rollback),
    ClockCorrected: ("clock_corrected", lambda body: {"was": body.was, "by": body.by}),
    of_collections.CollectionOpened: ("collection_opened", of_collections.write_collection),
    of_collections.CollectionClosed: ("collection_closed", of_collections.write_collection),
    StreamOpened: ("stream_opened", write_stream),
    EpochBegun: ("epoch_begun", dataclasses.asdict),
    EpochReleased: ("epoch_released", write_release),
    VisitsReleased: ("visits_released", write_visits),
    StreamDropped: ("stream_dropped", dataclasses.asdict),
}
_READERS: Final[dict[str, Callable[[Fields], Body]]] = {
    "table_opened": _read_opened,
    "data_pinned": lambda fields: DataPinned(typed(fields["rows_fingerprint"], str)),
    "table_declared": lambda fields: TableDeclared(typed(fields["declaration"], str)),
    "budget_set": _read_budget,
    "budget_joined": lambda fields: BudgetJoined(typed(fields["shared_budget"], str)),
    "horizon_advanced": _read_advanced,
    "changes_accepted": _read_accepted,
    "generation_begun": _read_begun,
    "limit_set": _read_limit,
    "charge": read_charge,
    "taken_over": lambda fields: TakenOver(typed(fields["charge"], int)),
    "measurement": _read_measured,
    "charge_given_up": lambda fields: GivenUp(typed(fields["charge"], int)),
    "served": _read_served,
    "access_granted": _read_granted,
    "access_revoked": lambda fields: AccessRevoked(
        typed(fields["id"], str), typed(fields["by"], str)
    ),
    "rollback_accepted": _read_rollback,
    "clock_corrected": lambda fields: ClockCorrected(
        typed(fields["was"], str), typed(fields["by"], str)
    ),
    "collection_opened": of_collections.read_opened,
    "collection_closed": of_collections.read_closed,
    "stream_opened": read_stream,
    "epoch_begun": read_epoch,
    "epoch_released": read_release,
    "visits_released": read_visits,
    "stream_dropped": read_drop,
}
