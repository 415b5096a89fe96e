"""SQL that runs on answers: in a database that reaches nothing, in a process that can be ended."""

from proxy.engine.sql.closed_database import N_ROWS_MAX
from proxy.engine.sql.postprocessing import OuterSql
from proxy.engine.sql.process import PROCESSES

__all__ = ["N_ROWS_MAX", "PROCESSES", "OuterSql"]
