"""The audit report of a ledger: what was spent, by whom, on what, and what that guarantees."""
