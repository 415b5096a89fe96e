"""Expressions over public columns: resolved, allowed or refused, and evaluated on declared levels.

Here: the public domain of one statement, and the scratch database that holds levels and nothing
else. Not here: which counts a statement asks for (`lowering/`).
"""
