"""Tests of the profiles that the emulated device takes of kernels."""
