"""Kernels, options and errors in other processes."""
