"""Tests of kernels, options and errors that are pickled into other processes."""
