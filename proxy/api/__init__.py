"""What the wire asks of the engine and what it gets back: plain values, and their Arrow types.

Here: requests, answers, receipts. Not here: messages of any protocol (`wire/`), and how an answer
is found (`engine/`).
"""
