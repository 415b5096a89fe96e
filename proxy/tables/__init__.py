"""Private tables as they are served: history, snapshots, purchases.

A table owns its locks. Others ask it for a snapshot, which is a value that waits for nobody, and
for what they lack. Not here: SQL, formulas and targets that depend on answers (`engine/`).
"""
