"""The vocabulary of Tacit: public schema, linear queries over cells, measurements, refusals.

Pure values. Nothing here does input or output, draws noise, or keeps a budget.
"""
