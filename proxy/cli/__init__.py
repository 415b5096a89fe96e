"""The command `tacit`: arguments in, printed text out.

One module per group of commands; what they share is in `shared/`, what `tacit init` writes in
`draft/`, and the processes of `tacit serve` in `serving/`. Not here: what the commands do, which is
in the packages below.
"""
