"""Where a ledger's entries lie: a file, or a database that several servers share."""
