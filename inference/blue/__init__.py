"""The best linear unbiased estimate of a query from the history, on atoms and as sums of groups.

Here: the algebra of rows and coefficients, updated as a history grows, and the choice of the rows
that can matter. Not here: the law of the error (`noise_law/`), and the posterior, which combines
the two (`posterior.py`).
"""

from inference.blue.atoms import Atoms, row_signature
from inference.blue.blue import OnlineBlue
from inference.blue.combined_rows import CombinedRows
from inference.blue.counted_groups import CountedGroups
from inference.blue.hierarchy_reader import Divided, HierarchyReader, finest_groups, is_divided_at
from inference.blue.partition_reader import PartitionReader, Reading
from inference.blue.stretches import Stretch, StretchesReader, on_stretch
from inference.blue.workspaces import LinearEstimates, Workspace

__all__ = [
    "Atoms",
    "CombinedRows",
    "CountedGroups",
    "Divided",
    "HierarchyReader",
    "LinearEstimates",
    "OnlineBlue",
    "PartitionReader",
    "Reading",
    "Stretch",
    "StretchesReader",
    "Workspace",
    "finest_groups",
    "is_divided_at",
    "on_stretch",
    "row_signature",
]
