"""The wire formats: our own `tacit.v1`, and the parts of Arrow Flight and Flight SQL we speak.

The `.proto` files are written by hand, the `*_pb2*` modules generated from them (`make protocol`).
Nothing here decides anything.
"""
