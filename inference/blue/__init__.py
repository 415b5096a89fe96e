"""The best linear unbiased estimate of a query from the history, on atoms and as sums of groups.

Here: the algebra of rows and coefficients, updated as a history grows, and the choice of the rows
that can matter. Not here: the law of the error (`noise_law/`), and the posterior, which combines
the two (`posterior.py`).
"""
