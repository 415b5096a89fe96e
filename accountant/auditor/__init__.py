"""The auditor: checks a ledger from its text alone, by code of its own."""
