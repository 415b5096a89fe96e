"""The law of Laplace errors and one Gaussian, added: distribution, quantiles, half-widths.

By contour integration with a proved bound; by convolution and by simulation, as checks of each
other. Not here: which noises a query's error consists of (`blue/` finds the coefficients).
"""
