"""PrivBayes: a Bayesian network chosen privately, one noisy table for each column, rows from both.

Reads choices and noisy tables only, through a port. Draws no noise that protects data.
"""

from synthesis.privbayes.answering import exact_law, law_given
from synthesis.privbayes.greedy import FALSE_ODDS, greedy_network, n_simulations, parents_worth
from synthesis.privbayes.learning import DEFAULTS, LearningSettings, learned_network
from synthesis.privbayes.network import (
    Attribute,
    BayesianNetwork,
    Node,
    Parent,
    grouped_attribute,
    layered_attribute,
    network_json,
    network_of,
    plain_attribute,
)

__all__ = [
    "DEFAULTS",
    "FALSE_ODDS",
    "Attribute",
    "BayesianNetwork",
    "LearningSettings",
    "Node",
    "Parent",
    "exact_law",
    "greedy_network",
    "grouped_attribute",
    "law_given",
    "layered_attribute",
    "learned_network",
    "n_simulations",
    "network_json",
    "network_of",
    "parents_worth",
    "plain_attribute",
]
