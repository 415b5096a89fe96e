"""The ledger: one append-only, hash-chained history of budgets, charges and noisy values.

Here: its entries and their JSON, the tables' histories computed from them, limits and credentials,
the clock, and what an owner may do about a loss. Not here: where entries are stored (`stores/`),
what they cost (`cost/`), and the auditor, which shares no code with this.
"""
