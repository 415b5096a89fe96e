"""The gate to private data: a plan is priced, charged, read once, and released with noise.

Here: the gate itself, prices of plans before anything is charged, the one function that reads, and
the opening of a table. Not here: what cells cost (`cost/`), how noise is drawn (`noise/`), what is
computed exactly before noise is added (`exact/`), what is recorded (`ledger/`).
"""

from accountant.gate.asked import Asked, RemoteGates, Told, states_in, written_states
from accountant.gate.ended_generation import EndedGeneration, generation_over
from accountant.gate.gate import Gate, n_come
from accountant.gate.opening import Funds, open_table, renew_table, schema_digest
from accountant.gate.pricing import Pricing

__all__ = [
    "Asked",
    "EndedGeneration",
    "Funds",
    "Gate",
    "Pricing",
    "RemoteGates",
    "Told",
    "generation_over",
    "n_come",
    "open_table",
    "renew_table",
    "schema_digest",
    "states_in",
    "written_states",
]
