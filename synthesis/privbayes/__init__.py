"""PrivBayes: a Bayesian network chosen privately, one noisy table for each column, rows from both.

Reads choices and noisy tables only, through a port. Draws no noise that protects data.
"""

from synthesis.privbayes.answering import exact_law, law_given
from synthesis.privbayes.greedy import FALSE_ODDS, greedy_network, n_simulations, parents_worth
from synthesis.privbayes.learning import (
    DEFAULTS,
    ChoiceMeasurer,
    LearningSettings,
    bought_tables,
    check_affords,
    chosen_nodes,
    learned_network,
    views_of,
)
from synthesis.privbayes.network import (
    Attribute,
    BayesianNetwork,
    Node,
    Parent,
    draw_rows,
    fitted_network,
    grouped_attribute,
    layered_attribute,
    nearest_counts,
    network_json,
    network_of,
    plain_attribute,
)

__all__ = [
    "DEFAULTS",
    "FALSE_ODDS",
    "Attribute",
    "BayesianNetwork",
    "ChoiceMeasurer",
    "LearningSettings",
    "Node",
    "Parent",
    "bought_tables",
    "check_affords",
    "chosen_nodes",
    "draw_rows",
    "exact_law",
    "fitted_network",
    "greedy_network",
    "grouped_attribute",
    "law_given",
    "layered_attribute",
    "learned_network",
    "n_simulations",
    "nearest_counts",
    "network_json",
    "network_of",
    "parents_worth",
    "plain_attribute",
    "views_of",
]
