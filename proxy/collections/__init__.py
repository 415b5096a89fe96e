"""Collections of randomised answers, served: who may answer, and counts that survive a crash.

Belongs here: the file of counts, tokens of respondents, opening and closing a collection, each with
its entry in the ledger, and plans for one before that. Not here: how answers are randomised and
what counts say (`local_dp`), and any wire. Nothing here reads a private row or spends a table's
budget.
"""

from proxy.collections.cells import estimated_shares, likeliest_shares
from proxy.collections.feature import Collections
from proxy.collections.plan import CONFIDENCE, LEVEL, NoiseKind, NoisyTest, Plan, made_plan
from proxy.collections.service import CollectionService
from proxy.collections.status import CollectionStatus, check_size
from proxy.collections.table import N_SIMULATED_MAX, CollectedTable

__all__ = [
    "CONFIDENCE",
    "LEVEL",
    "N_SIMULATED_MAX",
    "CollectedTable",
    "CollectionService",
    "CollectionStatus",
    "Collections",
    "NoiseKind",
    "NoisyTest",
    "Plan",
    "check_size",
    "estimated_shares",
    "likeliest_shares",
    "made_plan",
]
