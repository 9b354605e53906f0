"""As in cuda.core, where its tests look for it."""

from cuda.core._memory import _SynchronousMemoryResource

__all__ = ["_SynchronousMemoryResource"]
