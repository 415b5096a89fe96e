"""Channels: how one answer is randomised, as exact probabilities, and what counts of answers say.

Each channel belongs to one combination of attributes. Drawing is the respondent's business
(`local_dp.respondent`); which combinations there are is the campaign's.
"""
