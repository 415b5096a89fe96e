"""What measurements cost: the exact privacy loss of each cell, and its maximum over the table.

Here: the cost of rows under Laplace noise, and the zero-concentrated account of Gaussian noise. Not
here: who may spend how much (`ledger/`), and when it is charged (`gate/`).
"""

from accountant.cost.cost_at_cell import is_below
from accountant.cost.history_cost import CostState, Price, price_of
from accountant.cost.row_cost import profile_of, rows_in_block, units_per_square
from accountant.cost.summed_costs import TableCost
from accountant.cost.zcdp_account import GaussianAccount, constant_of

__all__ = [
    "CostState",
    "GaussianAccount",
    "Price",
    "TableCost",
    "constant_of",
    "is_below",
    "price_of",
    "profile_of",
    "rows_in_block",
    "units_per_square",
]
