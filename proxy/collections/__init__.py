"""Collections of randomised answers, served: who may answer, and counts that survive a crash.

Belongs here: the file of counts, tokens of respondents, opening and closing a collection, each with
its entry in the ledger, and plans for one before that. Not here: how answers are randomised and
what counts say (`local_dp`), and any wire. Nothing here reads a private row or spends a table's
budget.
"""
