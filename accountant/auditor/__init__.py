"""The auditor: checks a ledger from its text alone, with code independent of the server's."""
