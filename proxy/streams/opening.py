"""From a statement to what the ledger notes of a stream. Values only.

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
from streams.mechanism import EPSILON_MIN
from streams.split import best_mechanism

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


def epsilon_of(opened: StreamOpened) -> Fraction:
    """What an epoch loses."""
    return Fraction(opened.epsilon_units, UNITS_PER_EPSILON)
