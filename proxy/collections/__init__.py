"""Collections of randomised answers, served: who may answer, and counts that survive a crash.

Belongs here: the file of counts, tokens of respondents, opening and closing a collection, each with
its entry in the ledger, plans for one before that, the calls of all of it, and collections as
tables. Not here: how answers are randomised and what counts say (`local_dp`). Nothing here reads a
private row or spends a table's budget.
"""

from proxy.collections.feature import Collections
from proxy.collections.service import CollectionService
from proxy.collections.table import N_SIMULATED_MAX, CollectedTable

__all__ = ["N_SIMULATED_MAX", "CollectedTable", "CollectionService", "Collections"]
