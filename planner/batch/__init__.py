"""What to buy for many statements together: the cheapest of several plans for all of them.

Needs cvxpy (extra `plan`). What one statement buys is decided in `measuring/`.
"""
