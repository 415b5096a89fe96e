"""From a statement to what the ledger notes of a stream, and from that to its epochs. Values only.

All of a stream is in its entry, so a restart needs nothing else but the files of its states.
"""

import secrets
from fractions import Fraction
from typing import Final

from accountant.ledger.limits import Window
from accountant.ledger.stream_entries import StreamOpened
from cube.exponential import EPSILON_MAX
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidTarget
from planner.sql.stream_statements import CreateStream
from streams.epoch import Epoch
from streams.mechanism import EPSILON_MIN, Mechanism
from streams.noise import GeometricNoise
from streams.population import Buckets, Everyone, Population, Sample
from streams.split import best_mechanism
from streams.two_point import TwoPoint

KEY_BYTES: Final = 16


def opened_by(order: CreateStream, who: str) -> StreamOpened:
    """What the ledger notes of a stream that is asked for.

    Raises
    ------
    InvalidTarget
        If its epsilon is out of range.
    """
    if not EPSILON_MIN <= order.epsilon <= EPSILON_MAX:
        raise InvalidTarget(
            f"The epsilon of a stream is from 1/{EPSILON_MIN.denominator} to {EPSILON_MAX}.",
            hint="As in epsilon => 1, which is what an epoch loses in all.",
        )
    mechanism = best_mechanism(order.epsilon, order.n_bits)
    everybody = order.universe == order.n_bits
    budget = order.budget
    return StreamOpened(
        column=order.column,
        universe=order.universe or 0,
        n_places=order.n_bits,
        p1=mechanism.state.threshold,
        alpha=mechanism.output.threshold,
        epsilon_units=mechanism.epsilon_units,
        epochs=Window(order.epochs),
        has_departures=order.has_departures,
        key="" if everybody else secrets.token_bytes(KEY_BYTES).hex(),
        budget_units=None if budget is None else int(budget * UNITS_PER_EPSILON),
        by=who,
    )


def epoch_of(stream: str, opened: StreamOpened, name: str, noisy_ones: int | None) -> Epoch:
    """An epoch of a stream; with what was released of it."""
    return Epoch(
        stream,
        name,
        population_of(opened),
        mechanism_of(opened),
        has_departures=opened.has_departures,
        noisy_ones=noisy_ones,
    )


def mechanism_of(opened: StreamOpened) -> Mechanism:
    """The laws of a stream's bits and of its noise; no other than what the ledger notes."""
    return Mechanism(TwoPoint(opened.p1), GeometricNoise(opened.alpha))


def population_of(opened: StreamOpened) -> Population:
    """Who has which bit."""
    key = bytes.fromhex(opened.key)
    if not opened.universe:
        return Buckets(opened.n_places, key)
    if not key:
        return Everyone(opened.universe)
    return Sample(opened.universe, opened.n_places, key)


def epsilon_of(opened: StreamOpened) -> Fraction:
    """What an epoch loses."""
    return Fraction(opened.epsilon_units, UNITS_PER_EPSILON)
