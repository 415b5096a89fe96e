"""The law of a weighted sum of Laplace errors: distribution, quantiles, half-widths.

By contour integration with a proved bound; by convolution and simulation as each other's checks.
Not here: which noises a query's error is made of (`blue/` finds the coefficients).
"""
