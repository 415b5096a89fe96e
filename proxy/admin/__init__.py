"""What owners do: limits, the ledger that a configuration names, and signatures of its head.

Here: the operations. Not here: who may call them (`identity/`), and the commands (`cli/`).
"""
