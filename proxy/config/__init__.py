"""The configuration file, read and checked: values that are right, or every problem of it at once.

Nothing here opens data, a ledger or a port.
"""
