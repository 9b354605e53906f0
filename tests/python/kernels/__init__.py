"""Runs every kernel of tests/kernels through all of Bascule and compares the results with NumPy."""
