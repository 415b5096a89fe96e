"""Estimates: from counts of randomised answers to shares, intervals and tables that agree.

Everything here is post-processing of answers that were private before they were sent: free, and
repeatable without end. No single answer is looked at, only counts.
"""
