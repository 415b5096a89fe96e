"""How one process is shared: fair turns between analysts, deadlines, patience with slow clients.

Here: who works when. Not here: what a statement may cost to plan (`planner/domain/allowance.py`),
and budgets of privacy (`accountant/`).
"""
