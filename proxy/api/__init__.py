"""Requests to the engine and their results: plain values, and their Arrow types.

Here: requests, answers, receipts. Not here: protocol messages (`wire/`), and how an answer is
computed (`engine/`).
"""
