"""The command `tacit`: what is typed, and what is printed.

A module a command. Not here: what the commands do, which is in the rooms below.
"""
