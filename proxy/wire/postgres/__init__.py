"""The PostgreSQL wire: what psql, drivers and BI tools speak. One connection is one thread.

`listener` accepts, `connection` leads one client from its first byte to its last and answers its
messages, `login` and `transport` bring it in, `session` carries statements out, and the rest are
values: messages, types, settings. No SQL is understood here and nothing is decided about privacy:
the engine does both.
"""
