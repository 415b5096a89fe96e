"""What an answer is: values and laws, the widths that its blocks need, its relation, its table.

Not here: which blocks are bought, and what a caller may see of them (`engine/`).
"""
