"""What to measure when the history does not suffice: candidates, weights, prices, the choice.

Here: the strategies, the ski rental, and the forecast of the half-widths that a purchase gives.
Not here: many statements together (`batch/`), and the charge itself (the accountant's gate).
"""
