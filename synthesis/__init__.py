"""Synthetic tables: from noisy tables of one and two columns, or of a network, to rows.

Reads noisy values only. Draws no noise that protects data; touches no budget and no private row.
"""
