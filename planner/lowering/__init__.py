"""From a SELECT to linear queries, formulas of them, and the SQL that is computed from the answers.

Here: the cut at the aggregates, and the translation of each kind of aggregate. Not here: what is
then measured (`measuring/`).
"""
