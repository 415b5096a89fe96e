"""The command `tacit`: arguments in, printed text out.

One module per group of commands. Not here: what the commands do, which is in the packages below.
"""
