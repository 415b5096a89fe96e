"""What is computed from exact counts before noise is added: answers, scores, noisy choices.

Only `gate/release.py` calls it, on what the source gave; nothing exact is kept. Not here: the noise
itself (`noise/`).
"""
