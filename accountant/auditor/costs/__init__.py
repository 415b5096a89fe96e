"""What the rows of a history cost, as the auditor finds it: totals, columns, and units."""
