"""What the history says: best linear unbiased estimates, the law of their noise, posteriors.

Reads noisy values only. Never draws noise, never touches a budget or a private row.
"""
