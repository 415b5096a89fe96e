"""The configuration file, read and checked: valid settings, or all of its problems at once.

Nothing here opens data, a ledger or a port.
"""
