"""What to measure when the history does not suffice: candidates, weights, prices, the choice.

Here: the strategies, and the forecast of half-widths that keeps their promise. Not here: many
statements together (`batch/`), and the charge itself, which is the accountant's.
"""
