"""What is asked before a statement, and put into it: subqueries' answers, and sizes of units.

Both are noisy, paid for, and history from then on.
"""

from proxy.engine.asked_before.asked_first import (
    ASKED_FIRST,
    FirstAnswer,
    answer_of,
    asked_for,
    cap_of_next,
    capped,
    given,
    say_what_is_known,
    stand_ins,
    with_first,
)
from proxy.engine.asked_before.unit_bounds import (
    advice_on,
    fitted,
    fitted_by_history,
    said_of_bounds,
    say_what_bounds_cost,
)

__all__ = [
    "ASKED_FIRST",
    "FirstAnswer",
    "advice_on",
    "answer_of",
    "asked_for",
    "cap_of_next",
    "capped",
    "fitted",
    "fitted_by_history",
    "given",
    "said_of_bounds",
    "say_what_bounds_cost",
    "say_what_is_known",
    "stand_ins",
    "with_first",
]
