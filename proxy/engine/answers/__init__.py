"""What an answer is: values and laws, the widths that its blocks need, its relation, its table.

Not here: which blocks are bought, and what a caller may see of them (`engine/`).
"""

from proxy.engine.answers.best_values import reported
from proxy.engine.answers.count_statistics import TESTED_SCHEMA, consistent
from proxy.engine.answers.decisions import claimed_relations, unanswered_claims, undecided
from proxy.engine.answers.formula_widths import narrowed, opening
from proxy.engine.answers.relations import N_ROWS_TRIED, check_multiplied, relation, unanswered
from proxy.engine.answers.released import promised_columns
from proxy.engine.answers.results import AnsweredAggregate, AnsweredItem, AnsweredPart
from proxy.engine.answers.unit_sizes import HIDDEN, SURE, Sizes
from proxy.engine.answers.wanted_blocks import (
    Asked,
    Step,
    asked_of,
    at_widths,
    smallest_cap,
    take_step,
)

__all__ = [
    "HIDDEN",
    "N_ROWS_TRIED",
    "SURE",
    "TESTED_SCHEMA",
    "AnsweredAggregate",
    "AnsweredItem",
    "AnsweredPart",
    "Asked",
    "Sizes",
    "Step",
    "asked_of",
    "at_widths",
    "check_multiplied",
    "claimed_relations",
    "consistent",
    "narrowed",
    "opening",
    "promised_columns",
    "relation",
    "reported",
    "smallest_cap",
    "take_step",
    "unanswered",
    "unanswered_claims",
    "undecided",
]
