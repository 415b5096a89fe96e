"""The holders of a federated table, as the source of its noisy rows: calls to their servers.

Not here: what each is asked (`accountant/gate/holders.py`), and a server as a holder
(`proxy/federation/`).
"""

from proxy.sources.holders.gates import GatesOfHolders, GrowingGates

__all__ = ["GatesOfHolders", "GrowingGates"]
