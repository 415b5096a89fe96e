"""How long it takes to verify a year on a wide table, and whether an error of one unit is found.

    python -m benchmarks.audit_verify [--quick]

20,000 entries on the 13 columns of the Adult table: 10,000 charges, each for a count over one to
three columns, a fifth of them grouped, and their measurements. Each is charged what the server's
own accountant computes, so that there is no slack for the auditor: exact costs while those are
within its reach, its proved bounds afterwards. It is verified as `tacit audit verify` does it,
without the garbage collector.

Then the ledger is falsified: from one of the exact charges on, one unit of 2**-40 too little is
charged. The auditor must name that entry.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from accountant.auditor.verify import verify
from accountant.cost.history_cost import CostState, price_of
from accountant.ledger.charged import ChargedBlock
from accountant.ledger.entries import (
    GENESIS,
    Body,
    Charge,
    Entry,
    Measured,
    TableOpened,
    chained_digest,
)
from accountant.ledger.entry_json import write
from accountant.ledger.limits import Payer
from accountant.noise.lattice_noise import LatticeNoise
from benchmarks.report import Bar, progress, run, wants_quick
from cube.axis import Axis, CategoryAxis
from cube.encoding import canonical_json
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Weight
from cube.query import Factor, Partition, QueryBlock, counting
from cube.runtime import uncollected
from cube.schema import Schema
from examples.adult.demo import prepare
from proxy.config.settings import load

SEED = 17
N_CHARGES = 10_000
N_CHARGES_QUICK = 1_000
N_COLUMNS_MAX = 3
SHARE_GROUPED = 0.2
N_GROUP_LEVELS_MAX = 16
WEIGHT = 0.001
BUDGET = Fraction(100)
N_LIES = 5
SECONDS_MAX = 10.0  # it takes 7 on two cores that others use as well
AT = "2026-11-21T20:07:49.123+00:00"


def main() -> None:
    """Write a ledger, verify it, lie in it, verify it again, and report."""
    quick = wants_quick("Verifying a ledger of 20,000 entries on 13 columns.")
    with TemporaryDirectory(prefix="tacit-bench-") as folder:
        schema = load(prepare(Path(folder))).tables[0].schema
    entries, exact = written(schema, N_CHARGES_QUICK if quick else N_CHARGES)
    with uncollected():
        start = perf_counter()
        verdict = verify(entries)
        seconds = perf_counter() - start
    if verdict.problem is not None:
        raise RuntimeError(verdict.problem)
    (table,) = verdict.tables
    found, told = lied(entries, exact)
    figures = {
        "n_entries": verdict.n_entries,
        "seconds": seconds,
        "charged": float(table.spent),
        "recomputed": float(table.recomputed),
        "recomputed_is_exact": table.exact,
        "n_charged_exactly": len(exact),
        "notes": verdict.notes,
        "lies": told,
    }
    bars = [
        Bar("verifying the ledger, seconds", seconds, SECONDS_MAX, seconds < SECONDS_MAX),
        Bar("charges that were left open", len(verdict.notes) - (not table.exact), 0,
            len(verdict.notes) == (not table.exact)),
        Bar("lies of one unit that were found, of those that were told", found, N_LIES,
            found == N_LIES),
    ]  # fmt: skip
    run(figures, bars)


def written(schema: Schema, n_charges: int) -> tuple[list[Entry], list[int]]:
    """A ledger, and the numbers of those of its charges that are exactly what their rows cost."""
    rng = np.random.default_rng(SEED)
    state, spent, exact = CostState(), 0, []
    bodies: list[Body] = [TableOpened("schema", "data", BUDGET)]
    for place in range(n_charges):
        weight = Weight.at_least(WEIGHT * rng.uniform(0.5, 1.5))
        charged = ChargedBlock(block(schema, rng), LatticeNoise.for_weight(weight))
        planned = PlannedMeasurement(charged.block, weight)
        price = price_of(state, spent, [planned])
        state = state.charged([planned])
        spent = price.units_after
        bodies.append(Charge(Payer("ann"), (charged,), price.units_before, spent))
        if price.exact:
            exact.append(len(bodies))
        bodies.append(Measured(len(bodies), ((0,) * charged.block.n_rows,)))
        if (place + 1) % 500 == 0:
            progress(f"{place + 1} charges, epsilon {spent / UNITS_PER_EPSILON:.4f}")
    return linked(bodies, schema.table), exact


def linked(bodies: Sequence[Body], table: str) -> list[Entry]:
    """The entries that say `bodies`."""
    entries, head = [], GENESIS
    for seq, body in enumerate(bodies, start=1):
        kind, text = write(body)
        head = chained_digest(head, (seq, AT, kind, table, text))
        entries.append(Entry(seq, AT, kind, table, text, head))
    return entries


def block(schema: Schema, rng: np.random.Generator) -> QueryBlock:
    """A count over a few columns, perhaps by the groups of one of them."""
    chosen = rng.permutation(len(schema.axes))[: 1 + int(rng.integers(N_COLUMNS_MAX))]
    axes = [schema.axes[place] for place in chosen]
    partition = None
    if rng.random() < SHARE_GROUPED and axes[0].size <= N_GROUP_LEVELS_MAX:
        key = axes.pop(0)
        partition = Partition((key.name,), np.arange(key.size, dtype=np.int64))
    return QueryBlock(counting(predicate(axis, rng) for axis in axes), partition)


def predicate(axis: Axis, rng: np.random.Generator) -> Factor:
    """A range of an axis in order, or a few levels of one without; neither all nor none."""
    values = np.zeros(axis.size, dtype=np.int64)
    if isinstance(axis, CategoryAxis):
        n_levels = min(1 + int(rng.integers(3)), axis.size - 1)
        values[rng.permutation(axis.size)[:n_levels]] = 1
    else:
        first, last = np.sort(rng.permutation(axis.size)[:2])
        values[first:last] = 1
    return Factor((axis.name,), values)


def lied(entries: Sequence[Entry], exact: Sequence[int]) -> tuple[int, list[str]]:
    """How many lies of one unit were found, told at charges that were exact; and what was said."""
    rng = np.random.default_rng(SEED)
    rising = [seq for seq in exact if adds_something(entries[seq - 1])]
    found, told = 0, []
    for seq in sorted(map(int, rng.choice(rising, size=N_LIES, replace=False))):
        problem = verify(one_unit_less(entries, seq)).problem or "nothing was found"
        found += problem.startswith(f"entry {seq}: the rows cost")
        told.append(problem)
    return found, told


def one_unit_less(entries: Sequence[Entry], seq: int) -> list[Entry]:
    """A ledger that charges one unit less from an entry on, and is otherwise in order."""
    changed, head = list(entries[: seq - 1]), entries[seq - 2].digest
    for entry in entries[seq - 1 :]:
        body = json.loads(entry.body)
        for name in ("units_before", "units_after"):
            if name in body and (name, entry.seq) != ("units_before", seq):
                body[name] -= 1
        text = canonical_json(body)
        head = chained_digest(head, (entry.seq, entry.at, entry.kind, entry.table, text))
        changed.append(replace(entry, body=text, digest=head))
    return changed


def adds_something(entry: Entry) -> bool:
    """Whether a charge raised what is spent."""
    body = json.loads(entry.body)
    return bool(body["units_after"] > body["units_before"])


if __name__ == "__main__":
    main()
