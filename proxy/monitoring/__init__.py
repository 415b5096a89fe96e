"""Structured logs, metrics and health, for operators. Never SQL, a result or an exact count."""
