"""What owners do: limits, the ledger that a configuration names, and signatures of its head.

Here: the actions. Not here: who may take them (`identity/`), and the commands (`cli/`).
"""
