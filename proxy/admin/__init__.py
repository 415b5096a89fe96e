"""What owners do: limits, the ledger that a configuration names, and signatures of its head.

Here: the operations. Not here: who may call them (`identity/`), and the commands (`cli/`).
"""

from proxy.admin.head_signing import HeadSigner
from proxy.admin.ledger_admin import LedgerAdmin, LimitChange, open_configured, set_first_limit

__all__ = ["HeadSigner", "LedgerAdmin", "LimitChange", "open_configured", "set_first_limit"]
