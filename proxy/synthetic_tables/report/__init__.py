"""The report of a synthetic table: whether its rows agree with the noisy answers it was made of."""

from proxy.synthetic_tables.report.make import make_report

__all__ = ["make_report"]
