"""Plans the purchases for many statements together, by the cheapest of several plans.

Weights are found by Clarabel, which cvxpy calls. What one statement buys is decided in
`measuring/`.
"""

from planner.batch.plan import BatchPlan
from planner.batch.together import plan_together

__all__ = ["BatchPlan", "plan_together"]
