"""What measurements cost: the exact privacy loss of each cell, and its maximum over the table.

Here: the cost of rows under Laplace noise, and the zero-concentrated account of Gaussian noise. Not
here: who may spend how much (`ledger/`), and when it is charged (`gate/`).
"""
