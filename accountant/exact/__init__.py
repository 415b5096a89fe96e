"""What is computed from exact counts before noise is added: answers, scores, noisy choices.

Only `gate/release.py` calls it, on counts from the source; nothing exact is kept. Not here: the
noise itself (`noise/`).
"""
