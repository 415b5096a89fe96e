"""The text of charges: rows and statistics with their noise as canonical JSON, and back.

The other entries are in entry_json.py, which uses this.
"""

import math

from accountant.ledger.charged import (
    ChargedBlock,
    ChargedChoice,
    ChargedDistance,
    ChargedGaussian,
    ChargedStatistic,
    ChargedUnitCount,
)
from accountant.ledger.entries import Charge
from accountant.ledger.json_fields import Fields, typed
from accountant.ledger.limits import Payer
from accountant.noise.gaussian import GaussianNoise, sensitivity_of
from accountant.noise.laplace import LatticeNoise
from accountant.noise.lattice import LATTICE_BITS_MAX, OnLattice
from cube.encoding import (
    decode_block,
    decode_statistic,
    encode_block,
    encode_statistic,
    exact_number,
)
from cube.measurement import GaussianTerms, Precision, Rho, Weight
from cube.statistic import Choice, GaussianCounts, UnitCount


def write_charge(body: Charge) -> Fields:
    """The fields of a charge."""
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


def read_charge(fields: Fields) -> Charge:
    """The charge that `write_charge` wrote; ValueError, KeyError or TypeError otherwise."""
    groups = tuple(typed(name, str) for name in fields.get("groups", ()))
    return Charge(
        Payer(typed(fields["analyst"], str), groups),
        tuple(_read_charged(charged) for charged in fields["blocks"]),
        typed(fields["units_before"], int),
        typed(fields["units_after"], int),
        tuple(_read_statistic(charged) for charged in fields.get("statistics", ())),
        _read_terms(fields["normal"]) if "normal" in fields else None,
    )


def _read_terms(fields: Fields) -> GaussianTerms:
    return GaussianTerms(
        exact_number(typed(fields["delta"], str)), exact_number(typed(fields["order"], str))
    )


def _write_charged(charged: ChargedBlock) -> Fields:
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


def _read_charged(fields: Fields) -> ChargedBlock:
    is_gaussian = "precision_units" in fields
    return ChargedBlock(
        decode_block(fields["block"]),
        _read_precise_noise(fields) if is_gaussian else _read_noise(fields),
        _read_place(fields),
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
    if isinstance(charged, ChargedUnitCount):
        place = _write_place(charged.raised_from)
        return {**encode_statistic(charged.count), **_write_noise(charged.noise), **place}
    return {**encode_statistic(charged.choice), "weight_units": charged.weight.units}


def _read_statistic(fields: Fields) -> ChargedStatistic:
    statistic = decode_statistic(fields)
    if isinstance(statistic, Choice):
        return ChargedChoice(statistic, Weight(typed(fields["weight_units"], int)))
    if isinstance(statistic, UnitCount):
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
        raise ValueError(f"a lattice of {lattice_bits} bits")
    scale = float.fromhex(typed(fields["noise_scale"], str))
    return lattice_bits, math.ldexp(scale, lattice_bits)
