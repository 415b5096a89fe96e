"""Statements as text and as trees: the one reader of SQL, its grammar, and the words of refusals.

Here: what can be said of a statement without knowing any table. Not here: what its columns mean
(`domain/`) and what it asks for (`lowering/`).
"""
