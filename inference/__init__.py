"""What the history says: best linear unbiased estimates, the law of their noise, posteriors.

Reads noisy values only. Draws no noise that is released; touches no budget and no private row.
"""
