"""As in cuda.core, where its tests look for cuda_utils."""
