"""Pickles kernels, modules and launchers as text and options. The receiving process finds them in its cache.

Imported when something is pickled or unpickled.
"""

import copyreg
from collections.abc import Callable
from typing import Any

from bascule import _bascule, _errors

Reduced = tuple[Any, ...]  # a function, its arguments, and what a value's __setstate__ takes

_REFUSED = {
    "BoundLaunch": "it holds arrays. Pickle the kernel, and bind it to arrays of the receiving process",
    "DeviceArray": "its memory is the device's. Pickle x.copy_to_host(), and call bascule.to_device in the receiving "
    "process",
    "Event": "it is the driver's. Make one in the receiving process: bascule.event()",
    "Graph": "it is the driver's. Capture it in the receiving process",
    "Stream": "it is the driver's. Make one in the receiving process: bascule.stream()",
}


def reduce(self: Any) -> Reduced:
    """Implements `__reduce__` of the extension module's classes."""
    reducers = (_REDUCERS[each] for each in type(self).__mro__ if each in _REDUCERS)
    return next(reducers, _refuse)(self)


def _refuse(self: Any) -> Reduced:
    name = type(self).__name__
    why = _REFUSED.get(name, "it describes something of this process. Pickle the values that are needed")
    raise _errors.ArgumentTypeError(f"a bascule.{name} belongs to this process and cannot be pickled: {why}.")


def _reduce_value(value: Any) -> Reduced:
    return copyreg.__newobj__, (type(value),), value.__getstate__()  # type: ignore[attr-defined]


def _reduce_launcher(launcher: _bascule.Launcher) -> Reduced:
    kernel, config, work, shared_bytes, stream, peer, sync, names_streams = _bascule._launcher_recipe(launcher)
    if stream is not None or names_streams:
        raise _errors.ArgumentTypeError(
            "this bascule.Launcher has a stream, which belongs to this process, and cannot be pickled: pickle the "
            "kernel and its bascule.LaunchConfig, and write kernel[config, stream] in the receiving process."
        )
    return make_launcher, (kernel, config, work, shared_bytes, peer, sync)


def recipe(module: _bascule.Module) -> tuple[Any, ...]:
    """Return the arguments of `shared_module` for a module."""
    if not _bascule._is_one_text(module):
        raise _errors.ArgumentTypeError(
            "this module is not one CUDA C++ text, and cannot be pickled: call bascule.link or bascule.load_module in "
            "the receiving process."
        )
    if _bascule._exposes_variables(module):
        raise _errors.ArgumentTypeError(
            "this module cannot be pickled after get_global: its __device__ and __constant__ variables may have values "
            "of this process, which a pickle does not carry. Compile the text in the receiving process and copy the "
            "values there, or pickle before the first get_global."
        )
    return _bascule._module_recipe(module)


_MOST_MODULES = 1024
_modules: dict[tuple[Any, ...], _bascule.Module] = {}


def shared_module(*recipe: Any) -> _bascule.Module:
    """Return this process's module for a program. All unpickled kernels of the program share it and its loaded code.

    Makes a new module if a header has changed. The arguments are those of `_bascule._make_module`.
    """
    module = _modules.get(recipe)
    if module is None or not _bascule._is_current(module):
        if len(_modules) >= _MOST_MODULES:
            _modules.clear()
        module = _modules[recipe] = _bascule._make_module(*recipe)
    return module


def find_kernel(module: tuple[Any, ...], reference: tuple[Any, ...]) -> _bascule.Kernel:
    """Return a kernel of an unpickled module. It is compiled when it is used."""
    return _bascule._find_kernel(shared_module(*module), *reference)


def make_launcher(
    kernel: _bascule.Kernel,
    config: _bascule.LaunchConfig | None,
    work: tuple[int, ...],
    shared_bytes: int,
    peer: bool,
    sync: bool,
) -> _bascule.Launcher:
    """Return a launcher without a stream."""
    launcher = kernel.forall(work, shared_bytes=shared_bytes) if config is None else kernel[config]
    return launcher if sync and not peer else launcher.options(peer=peer, sync=sync)


_REDUCERS: dict[type, Callable[[Any], Reduced]] = {
    _bascule.CompileOptions: _reduce_value,
    _bascule.Device: lambda device: (_bascule.device, (device.ordinal,)),
    _bascule.Diagnostic: _reduce_value,
    _bascule.Kernel: lambda kernel: (
        find_kernel,
        (recipe(_bascule._module_of(kernel)), _bascule._kernel_reference(kernel)),
    ),
    _bascule.LaunchConfig: _reduce_value,
    _bascule.Launcher: _reduce_launcher,
    _bascule.Module: lambda module: (shared_module, recipe(module)),
}
