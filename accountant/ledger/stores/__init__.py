"""Where a ledger's entries are stored: in a file, or in a database that several servers share."""
