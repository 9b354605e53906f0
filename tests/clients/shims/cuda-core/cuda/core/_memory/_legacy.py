"""The module in which cuda.core's tests look for these names."""

from cuda.core._memory import _SynchronousMemoryResource

__all__ = ["_SynchronousMemoryResource"]
