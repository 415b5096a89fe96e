"""What `tacit init` drafts: a configuration, from a source's columns, and rows if asked for."""
