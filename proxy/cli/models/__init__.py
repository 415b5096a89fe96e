"""Models of synthetic tables as files: read, joined, and used without a server."""
