"""The protocols on one port: gRPC and Flight SQL in, refusals as statuses out.

Here: messages, translated into the requests of `api/` and back. Not here: any decision on privacy,
cost or rights.
"""
