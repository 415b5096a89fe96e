"""From a statement to what the ledger notes of a stream. Values only.

All of a stream is in its entry, so a restart needs nothing else but the files of its states.
"""

import secrets
from fractions import Fraction
from typing import Final

from accountant.ledger.limits import Window
from accountant.ledger.streams import StreamOpened
from cube.exponential import EPSILON_MAX
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidTarget
from planner.sql.stream_statements import CreateStream
from streams.mechanism import EPSILON_MIN, best_mechanism

KEY_BYTES: Final = 16


def opened_by(order: CreateStream, who: str) -> StreamOpened:
    """What the ledger notes of a stream that is asked for.

    Raises
    ------
    InvalidTarget
        If its epsilon is out of range.
    """
    n_estimators = 1 + len(order.predicates)
    # In whole units, so that the parts are not more than all of it.
    each = Fraction(int(order.epsilon * UNITS_PER_EPSILON) // n_estimators, UNITS_PER_EPSILON)
    if order.epsilon > EPSILON_MAX or each < EPSILON_MIN:
        least = n_estimators * EPSILON_MIN
        of_each = f", in equal parts for {n_estimators} counts" if order.predicates else ""
        raise InvalidTarget(
            f"The epsilon of a stream is from {least} to {EPSILON_MAX}{of_each}.",
            hint="As in epsilon => 1, which is what an epoch loses in all.",
        )
    mechanism = best_mechanism(each, order.n_bits)
    everybody = order.universe == order.n_bits
    budget = order.budget
    return StreamOpened(
        column=order.column,
        universe=order.universe or 0,
        n_places=order.n_bits,
        p1=mechanism.state.threshold,
        alpha=mechanism.output.threshold,
        epsilon_units=n_estimators * mechanism.epsilon_units,
        epochs=Window(order.epochs),
        has_departures=order.has_departures,
        key="" if everybody else secrets.token_bytes(KEY_BYTES).hex(),
        budget_units=None if budget is None else int(budget * UNITS_PER_EPSILON),
        by=who,
        predicates=order.predicates,
    )


def epsilon_of(opened: StreamOpened) -> Fraction:
    """What an epoch loses."""
    return Fraction(opened.epsilon_units, UNITS_PER_EPSILON)
