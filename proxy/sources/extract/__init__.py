"""Rows kept in a file of their own on disk, encrypted: chunks, what is on its way, and the file."""
