"""The engine: a statement is planned, answered from history or measurements, and post-processed.

Here: the flow of one statement, targets that depend on answers, formulas, SQL on answers, EXPLAIN,
and what each caller may see. Not here: a table's history and its purchases (`tables/`).
"""

from proxy.engine.engine import Engine

__all__ = ["Engine"]
