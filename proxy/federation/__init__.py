"""A server as a holder: what the ledgers of other servers ask of its tables.

Here: the calls of `tacit.v1.Federation`. Not here: what a request costs and how it is measured
(`accountant/gate/`), and the coordinator's side (`proxy/sources/holders/`).
"""

from proxy.federation.feature import Federation

__all__ = ["Federation"]
