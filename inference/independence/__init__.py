"""Whether two columns are independent, judged from a noisy table and the law of its noise.

All of it is post-processing: it reads noisy counts, charges nothing, and sees no private row.
"""
