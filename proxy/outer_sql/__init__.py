"""SQL that runs on answers and public tables, in a database that reaches nothing.

It runs in processes that can be ended. They load `process.py` and what that needs, and nothing else
of the server; so this folder has no face.
"""
