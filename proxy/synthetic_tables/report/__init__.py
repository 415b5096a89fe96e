"""The report of a synthetic table: whether its rows agree with the noisy answers it was made of."""
