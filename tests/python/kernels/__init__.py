"""The corpus: every kernel of tests/kernels through the whole bridge, compared with NumPy."""
