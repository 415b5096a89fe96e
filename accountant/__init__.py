"""The trusted core: what everything costs, the ledger, the noise, and the gate to private data."""
