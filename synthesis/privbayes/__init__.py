"""PrivBayes: a Bayesian network chosen privately, one noisy table for each column, rows from both.

Reads choices and noisy tables only, through a port. Draws no noise that protects data.
"""
