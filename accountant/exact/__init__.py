"""What is computed from exact counts before noise is added: answers, scores, noisy choices.

Only `gate/release.py` calls it, on counts from the source; nothing exact is kept. Not here: the
noise itself (`noise/`).
"""

from accountant.exact.choices import chosen
from accountant.exact.counted_together import check_read, grouping_for, groupings_for
from accountant.exact.exact_answers import answer_bound, exact_distance, statistic_bound
from accountant.exact.unit_counts import exact_of_units

__all__ = [
    "answer_bound",
    "check_read",
    "chosen",
    "exact_distance",
    "exact_of_units",
    "grouping_for",
    "groupings_for",
    "statistic_bound",
]
