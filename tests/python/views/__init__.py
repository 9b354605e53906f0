"""Tests of views in kernels: any strides, masks, and the debug mode's errors for an index out of bounds."""
