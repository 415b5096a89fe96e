"""Lays the ledger of a coordinator of federated tables beside the ledgers of its holders.

Read from the texts of the entries alone. Each measurement of the coordinator names, in its receipt,
a charge of a holder and a later head of that holder's ledger. The holder's ledger must have that
head, and under that number a charge that was asked for under the name of the coordinator's charge,
for the same rows with the same noise; and the values must be the same. Each charge that the holder
made for this coordinator must be one of the coordinator's: measured, waiting, or given up.

What each ledger says by itself is checked by `verify`. Proof: proofs/federation.md.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from accountant.auditor.fields import Json, parsed
from accountant.ledger.entries import Entry
from cube.encoding import canonical_json
from cube.measurement import UNITS_PER_EPSILON

REFERENCE_DIGITS: Final = 40


@dataclass(frozen=True, slots=True)
class HolderComparison:
    """One table of one holder, as the two ledgers have it.

    Parameters
    ----------
    ledger : str
        The name of the holder's ledger.
    table : str
        The holder's table.
    n_measured, n_waiting, n_given_up : int
        Charges of the coordinator that the holder measured and both record; that the holder has
        charged and the coordinator waits for; and that the holder has charged and the coordinator
        has given up.
    epsilon : Fraction
        What the coordinator's requests added to the cost of the holder's table.
    """

    ledger: str
    table: str
    n_measured: int
    n_waiting: int
    n_given_up: int
    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class Comparison:
    """What ledgers say of each other.

    Parameters
    ----------
    holders : tuple of HolderComparison
    n_waiting : int
        Charges of the coordinator that no holder has charged, and that wait.
    n_elsewhere : int
        Measurements of the coordinator whose holder's ledger was not given.
    problems : tuple of str
        Where the ledgers contradict each other.
    """

    holders: tuple[HolderComparison, ...]
    n_waiting: int
    n_elsewhere: int
    problems: tuple[str, ...]


@dataclass(slots=True)
class _Asked:
    """A charge of the coordinator."""

    seq: int
    body: Json
    measured: Json | None = None
    is_given_up: bool = False


@dataclass(slots=True)
class _Held:
    """The ledger of a holder."""

    name: str
    digests: dict[int, str] = field(default_factory=dict)
    charges: dict[str, tuple[int, str, Json]] = field(default_factory=dict)  # by reference
    values: dict[int, Json] = field(default_factory=dict)


def compared(coordinator: Iterable[Entry], holders: Mapping[str, Iterable[Entry]]) -> Comparison:
    """Compare a coordinator's ledger with those of its holders, by their names."""
    asked = dict(_asked(coordinator))
    held = [_held(name, entries) for name, entries in holders.items()]
    problems: list[str] = []
    found: dict[tuple[str, str], list[tuple[_Asked, Json]]] = {}
    matched: set[str] = set()
    for one in held:
        for reference, (number, table, charge) in one.charges.items():
            mine = asked.get(reference)
            if mine is None:
                continue  # another coordinator's, or a lie of the holder: it costs the holder alone
            matched.add(reference)
            found.setdefault((one.name, table), []).append((mine, charge))
            problems += _contradictions(mine, one, number, charge)
    problems += _without_charge(asked, matched, held)
    waiting = [one for name, one in asked.items() if name not in matched and _waits(one)]
    n_elsewhere = sum(
        one.measured is not None and "receipt" in one.measured
        for name, one in asked.items()
        if name not in matched
    )
    return Comparison(
        tuple(_summed(ledger, table, pairs) for (ledger, table), pairs in found.items()),
        len(waiting),
        n_elsewhere,
        tuple(problems),
    )


def _waits(asked: _Asked) -> bool:
    return asked.measured is None and not asked.is_given_up


def _summed(ledger: str, table: str, pairs: Sequence[tuple[_Asked, Json]]) -> HolderComparison:
    units = sum(charge["units_after"] - charge["units_before"] for _, charge in pairs)
    return HolderComparison(
        ledger,
        table,
        n_measured=sum(mine.measured is not None for mine, _ in pairs),
        n_waiting=sum(_waits(mine) for mine, _ in pairs),
        n_given_up=sum(mine.is_given_up for mine, _ in pairs),
        epsilon=Fraction(units, UNITS_PER_EPSILON),
    )


def _asked(entries: Iterable[Entry]) -> Iterator[tuple[str, _Asked]]:
    """The charges of a coordinator, by the references under which holders were asked."""
    first, charges = "", dict[int, tuple[str, _Asked]]()
    for entry in entries:
        first = first or entry.digest
        if entry.kind == "charge":
            body = parsed(entry.body)
            text = canonical_json([first, entry.table, entry.seq, body])
            reference = hashlib.sha256(text.encode()).hexdigest()[:REFERENCE_DIGITS]
            charges[entry.seq] = reference, _Asked(entry.seq, body)
        elif entry.kind in {"measurement", "charge_given_up"}:
            body = parsed(entry.body)
            known = charges.get(body["charge"])
            if known is not None and entry.kind == "measurement":
                known[1].measured = body
            elif known is not None:
                known[1].is_given_up = True
    yield from charges.values()


def _held(name: str, entries: Iterable[Entry]) -> _Held:
    """The requests of other ledgers in a holder's ledger."""
    found = _Held(name)
    numbers = set[int]()
    for entry in entries:
        found.digests[entry.seq] = entry.digest
        if entry.kind == "charge":
            body = parsed(entry.body)
            if "reference" in body:
                found.charges[body["reference"]] = entry.seq, entry.table, body
                numbers.add(entry.seq)
        elif entry.kind == "measurement":
            body = parsed(entry.body)
            if body["charge"] in numbers:
                found.values[body["charge"]] = body
    return found


def _contradictions(mine: _Asked, held: _Held, number: int, charge: Json) -> Iterator[str]:
    """Where a charge of the coordinator and that of a holder differ."""
    where = f"entry {mine.seq} of the coordinator and entry {number} of {held.name}"
    if _noises(mine.body) != _noises(charge):
        yield f"{where} are for rows with different noise"
    elif _rows(mine.body, charge) is None:
        yield f"{where} are for different rows"
    told, values = mine.measured, held.values.get(number)
    if told is None:
        return
    if values is None:
        yield f"{where}: the coordinator has values that the holder never measured"
        return
    names = ("lattice_values", "released")
    if [told.get(name) for name in names] != [values.get(name) for name in names]:
        yield f"{where}: the values differ"
    receipt = told.get("receipt", {})
    if receipt.get("entry") != number:
        yield f"{where}: the receipt names entry {receipt.get('entry')}"
    elif held.digests.get(receipt["head_entry"]) != receipt["head"]:
        yield f"{where}: the holder's ledger does not hold the head of the receipt"


def _without_charge(
    asked: Mapping[str, _Asked], matched: set[str], held: Sequence[_Held]
) -> Iterator[str]:
    """Receipts of a given ledger in which the charge is missing."""
    for name, one in asked.items():
        if name in matched or one.measured is None:
            continue
        receipt = one.measured.get("receipt")
        if receipt is None:
            continue
        for ledger in held:
            if ledger.digests.get(receipt["head_entry"]) == receipt["head"]:
                yield (
                    f"entry {one.seq} of the coordinator was measured by {ledger.name}, whose "
                    "ledger has no charge for it"
                )


def _noises(charge: Json) -> list[Json]:
    paid = (*charge["blocks"], *charge.get("statistics", ()))
    names = ("weight_units", "precision_units", "lattice_bits", "noise_scale", "rho_units")
    return [{name: one[name] for name in names if name in one} for one in paid]


def _rows(mine: Json, charge: Json) -> str | None:
    """The axis of the holders, without which the rows of two charges are the same; None if none."""
    theirs = [one["block"] for one in charge["blocks"]]
    ours = [one["block"] for one in mine["blocks"]]
    others = [_bare(one) for one in charge.get("statistics", ())]
    own = [_bare(one) for one in mine.get("statistics", ())]
    if not ours and not own:
        return None
    axes = {
        factor["axes"][0]
        for block in [*ours, *(one["block"] for one in own if "block" in one)]
        for term in block["terms"]
        for factor in term["factors"]
        if len(factor["axes"]) == 1
    } | {one["within"]["axes"][0] for one in own if "within" in one}
    for axis in sorted(str(one) for one in axes):
        if [_without(one, axis) for one in ours] == theirs and [
            _statistic_without(one, axis) for one in own
        ] == others:
            return axis
    return "" if (ours, own) == (theirs, others) else None  # of a table with one holder


def _bare(statistic: Json) -> Json:
    """A statistic without its noise, which is compared by itself."""
    noise = ("weight_units", "lattice_bits", "noise_scale", "rho_units", "raised_from")
    return {name: value for name, value in statistic.items() if name not in noise}


def _without(block: Json, axis: str) -> Json:
    terms = [
        {**term, "factors": [one for one in term["factors"] if one["axes"] != [axis]]}
        for term in block["terms"]
    ]
    return {**block, "terms": terms}


def _statistic_without(statistic: Json, axis: str) -> Json:
    found = {name: value for name, value in statistic.items() if name != "within"}
    if "block" in found:
        found["block"] = _without(found["block"], axis)
    return found
