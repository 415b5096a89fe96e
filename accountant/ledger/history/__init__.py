"""Histories: what a ledger's entries mean for a table, and for all of them together."""
