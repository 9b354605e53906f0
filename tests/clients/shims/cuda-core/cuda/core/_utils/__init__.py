"""The package in which cuda.core's tests look for cuda_utils."""
