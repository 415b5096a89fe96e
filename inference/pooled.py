"""The history of a federated table as if one holder had all rows: values of the holders added up.

A block that each of the holders has measured is one block, with the sum of their values. Its noise
is a sum of independent noises: one for each holder, with the variance that is stated. What reads
variances alone (marginals, synthetic tables) reads this; what needs the exact law of an answer
reads the history itself. Of one holder, its own measurements are the history of its own rows.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from cube.encoding import fingerprint
from cube.holders import Holders
from cube.measurement import Measurement
from inference.history import History


def held_by(history: History, holders: Holders, level: int) -> History:
    """What one holder has measured, as it has the rows."""
    found = History()
    for place in range(len(history)):
        one = history[place]
        holder, block = holders.at_holder(one.block)
        if holder == level and history.most_precise(one.block) == place:
            found.add([replace(one, block=block, supersedes=None)])
    return found


def pooled(history: History, holders: Holders) -> History:
    """The blocks that all holders have measured, each with the sum of its most precise values."""
    parts: dict[str, dict[int, Measurement]] = {}
    for place in range(len(history)):
        one = history[place]
        if history.most_precise(one.block) != place:
            continue
        level, block = holders.at_holder(one.block)
        parts.setdefault(fingerprint(block), {})[level] = one
    found = History()
    for of_block in parts.values():
        if len(of_block) == holders.n_holders:
            found.add([_summed([of_block[level] for level in sorted(of_block)], holders)])
    return found


def _summed(parts: Sequence[Measurement], holders: Holders) -> Measurement:
    """The sum of the values of all holders, whose weight is that of the least precise of them."""
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
