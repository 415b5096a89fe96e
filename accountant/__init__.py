"""The trusted core: privacy costs, the ledger, the noise, and the gate to private data."""
