"""Pan-private streams: counts of distinct users from a state that tells nothing of any of them.

The corrected forms of the published estimators, and no others. Knows no SQL, wire or ledger.
"""
