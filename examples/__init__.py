"""Things to run: each example is a module."""
