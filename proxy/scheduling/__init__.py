"""How one process is shared: fair turns between analysts, deadlines, limits on slow clients.

Here: which statement works when. Not here: how much work planning a statement may take
(`planner/domain/allowance.py`), and privacy budgets (`accountant/`).
"""
