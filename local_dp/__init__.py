"""Collections of randomised answers: local differential privacy, from the declaration to estimates.

Nothing private is ever here: a respondent's answer is randomised before it leaves their device.
"""
