"""Estimates shares, intervals and consistent tables from counts of randomised answers.

Everything here is post-processing of answers that were private before they were sent: free, and
repeatable without end. No single answer is looked at, only counts.
"""

from local_dp.estimates.collection import (
    AgreeingTable,
    ByPlace,
    CollectionEstimates,
    NotCovered,
    coefficients_of,
)
from local_dp.estimates.laws import IntervalMethod
from local_dp.estimates.likelihood import likeliest
from local_dp.estimates.shares import Tally, project_simplex

__all__ = [
    "AgreeingTable",
    "ByPlace",
    "CollectionEstimates",
    "IntervalMethod",
    "NotCovered",
    "Tally",
    "coefficients_of",
    "likeliest",
    "project_simplex",
]
