"""`Module.precompile` and `bascule precompile`: compile ahead, in worker processes."""

import importlib
import itertools
import os
import runpy
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bascule import _bascule, _compile, _errors
from bascule._compile_team import Event, Program, compile_programs, require_cache
from bascule._decorator import LaunchRule


class Summary(NamedTuple):
    """The result of `precompile_target`. Programs are named by their titles."""

    compiled: tuple[str, ...]
    from_disk: tuple[str, ...]  # programs that were on disk before
    failed: dict[str, Exception]
    templates: tuple[str, ...]  # skipped: no instance is named, so only a launch can choose one
    seconds: float


def precompile_module(
    module: _bascule.Module, instances: dict[str, Sequence[Any]], workers: int | None, progress: bool
) -> dict[str, list[_bascule.Kernel]]:
    """Implements `Module.precompile`."""
    recipe = _recipe(module)
    kernels = {name: [_instance(module, name, each) for each in given] for name, given in _checked(instances).items()}
    programs = []
    for kernel in itertools.chain.from_iterable(kernels.values()):
        reference = _bascule._kernel_reference(kernel)
        name, _, _, expression, _ = reference
        programs.append(Program(expression or name, recipe, reference))
    failed = {
        event.title: event.error
        for event in compile_programs(programs, workers=workers, progress=progress)
        if event.error is not None
    }
    if failed:
        raise _combined(failed, len(programs))
    for each in kernels.values():
        for kernel in each:
            kernel.ptx  # noqa: B018 - loads the image from the cache into the module
    return kernels


def _checked(instances: Any) -> dict[str, Sequence[Any]]:
    if isinstance(instances, dict) and all(isinstance(given, (list, tuple)) for given in instances.values()):
        return instances
    raise _errors.ArgumentTypeError(
        'precompile takes a dict of kernel names to lists of template arguments, like {"scale": ["float", "double"]}; '
        f"got {instances!r:.80}"
    )


def _instance(module: _bascule.Module, name: str, given: Any) -> _bascule.Kernel:
    template = module[name]
    if isinstance(given, dict):
        kernel = template.instantiate(**given)
    else:
        kernel = template.instantiate(*(given if isinstance(given, tuple) else (given,)))
    if kernel.is_template:
        raise _errors.ArgumentValueError(
            f"the instance {given!r} of {template.signature} needs all of its template arguments, because no launch "
            "can add to them here."
        )
    return kernel


def _recipe(module: _bascule.Module) -> tuple[Any, ...]:
    """Return the recipe of `_pickling`, with the architecture of a launch, because a worker has no device."""
    *text, options, name_expressions = _bascule._module_recipe(module)
    if options.arch is None:
        options = _bascule.CompileOptions(**{**options.__getstate__(), "arch": _bascule._target(options)})
    return *text, options, name_expressions


def _combined(failed: dict[str, Exception], total: int) -> _errors.CompileError:
    reasons = "\n".join(f"{title}: {error}" for title, error in failed.items())
    combined = _errors.CompileError(
        f"{len(failed)} of {total} programs failed to compile, and all others are in the cache.\n{reasons}"
    )
    errors = [error for error in failed.values() if isinstance(error, _errors.CompileError)]
    combined.diagnostics = [diagnostic for error in errors for diagnostic in error.diagnostics]
    combined.log = "\n".join(error.log for error in errors if error.log)
    combined.name_expression = ", ".join(failed)
    combined.options = errors[0].options if errors else []
    combined.architecture = errors[0].architecture if errors else ""
    return combined


def precompile_target(
    module_or_script: str,
    *,
    workers: int | None = None,
    progress: bool = True,
    on_event: Callable[[Event], None] | None = None,
) -> Summary:
    """Compile every kernel that importing a module, or running a script's top level, defines.

    These are launch rules of `bascule.kernel` and modules of `bascule.compile`, with the instances in their
    `name_expressions`. A script runs under the name `__bascule_precompile__`, so that code under
    `if __name__ == "__main__":` does not run. Kernels that functions compile when they are called are not found.

    `workers`, `progress` and `on_event` are as in `compile_programs`. Programs that fail are in the summary. Raises
    CacheError without a cache on disk, ArgumentValueError if there is no such module or file, and any exception of the
    module or script itself.
    """
    start = time.monotonic()
    require_cache()
    programs: list[Program] = []
    templates: list[str] = []
    failed: dict[str, Exception] = {}
    for found in _collect(module_or_script):
        try:
            module = found._module() if isinstance(found, LaunchRule) else found
            recipe = _recipe(module)
        except _errors.Error as error:
            failed[found.__name__ if isinstance(found, LaunchRule) else repr(found)] = error
            continue
        named = recipe[-1]
        kernels = [module[name] for name in type(module).kernels.__get__(module)]
        open_ones = [each.name for each in kernels if each.is_template]
        templates += [name for name in open_ones if not any(each.startswith(f"{name}<") for each in named)]
        titles = [each.name for each in kernels if not each.is_template] + list(named)
        program = Program(", ".join(titles) or recipe[1], recipe, None)
        if (titles or not open_ones) and program not in programs:
            programs.append(program)
    events = compile_programs(programs, workers=workers, progress=progress, on_event=on_event)
    failed.update({event.title: event.error for event in events if event.error is not None})
    return Summary(
        tuple(event.title for event in events if event.origin == "compiled"),
        tuple(event.title for event in events if event.origin == "disk"),
        failed,
        tuple(dict.fromkeys(templates)),
        time.monotonic() - start,
    )


def _collect(target: str) -> list[Any]:
    is_script = target.endswith(".py") or os.sep in target or Path(target).is_file()
    if is_script and not Path(target).is_file():
        raise _errors.ArgumentValueError(f"there is no file {target!r}")
    collected: list[Any] = []
    _compile.collected = collected
    arguments, path = sys.argv, list(sys.path)
    sys.argv = [target]
    sys.path.insert(0, str(Path(target).resolve().parent) if is_script else os.getcwd())
    try:
        if is_script:
            runpy.run_path(target, run_name="__bascule_precompile__")
        else:
            _import(target)
    finally:
        _compile.collected = None
        sys.argv, sys.path[:] = arguments, path
    return collected


def _import(name: str) -> None:
    try:
        if not all(name.split(".")):
            raise ModuleNotFoundError(name=name)
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise _errors.ArgumentValueError(
            f"there is no module {name!r}: name a module as in `import`, or a Python file by its path"
        ) from None
