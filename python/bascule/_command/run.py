"""`bascule run`: launches one kernel of a file from the command line and prints what it wrote."""

import argparse
import os
import re
import sys
from math import prod
from typing import Any

import bascule
from bascule._bascule import Kernel, Launcher, Module
from bascule._command.parser import (
    Commands,
    UsageError,
    add_checks_option,
    add_command,
    add_compile_options,
    compile_options,
    kernels_of_file,
    number_of,
    require_checks,
)

_EXAMPLES = """\
  bascule run saxpy.cu -k saxpy --grid 4 --block 256 2.0 arange:1000:f4 zeros:1000:f4 1000
  bascule run blur.cu --work 512x512 image.npy zeros:512x512:f4 --out out=blurred.npy
  bascule run reduce.cu -k block_sum -t float,256 --grid 64 --block 256 random:16384:f4 zeros:64:f4
  bascule run saxpy.cu --work 1000 --explain 2.0 arange:1000 zeros:1000 1000
  bascule run saxpy.cu --work 1000 --time --repeat 50 2.0 arange:1000 zeros:1000 1000"""

_FORMS = """\
kernel arguments, in the order of the parameters, or as NAME=VALUE after them:
  2  -1.5  1e-3  0x10  true  1+2j    a number, converted to the declared type
  1,2,3                              a tuple, for a vector type or a struct by value
  image.npy                          the array in a file of numpy.save
  zeros:SHAPE[:DTYPE]                zeros; also ones:
  full:SHAPE:DTYPE:VALUE             one value
  arange:SHAPE[:DTYPE]               0, 1, 2 ...
  random:SHAPE[:DTYPE[:SEED]]        floats from 0 to 1, integers of the dtype's whole range; the seed is 0
  null                               a null pointer

SHAPE is 1024 or 32x64. DTYPE is NumPy's: f4 (default), f8, i4, u1, c8, bool, or x=f4,n=i4 for a structure."""


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands,
        "run",
        "launch a kernel of a CUDA C++ file and print what it wrote",
        usage="bascule run FILE.cu [-k KERNEL] (--grid X[,Y[,Z]] --block X[,Y[,Z]] | --work N) [options] [VALUE ...]",
        details=_FORMS,
        examples=_EXAMPLES,
    )
    file = parser.add_argument("file", metavar="FILE.cu", help="a file of CUDA C++")
    kernel = parser.add_argument(
        "-k", "--kernel", metavar="KERNEL", help="name of the kernel; not needed where the file has one"
    )
    parser.add_argument("-t", "--template", metavar="ARGS", help="template arguments, such as float,256")
    parser.add_argument("--out", action="append", default=[], metavar="NAME=FILE", help="save that array as .npy")
    parser.add_argument("--explain", action="store_true", help="print what the launch would do, and launch nothing")
    launches = number_of("launches, at least 1", 1)
    parser.add_argument("--repeat", type=launches, metavar="N", help="launches (default 1; with --time 10)")
    parser.add_argument(
        "--time", action="store_true", help="then measure that many more launches, with an event around each"
    )
    add_checks_option(
        parser,
        "run on the emulated device, and check every access; memory: also every index of a view; or names such as "
        "init,shared_races; or all",
    )
    geometry = parser.add_argument_group("geometry")
    geometry.add_argument("--grid", type=_extents, metavar="X[,Y[,Z]]", help="blocks")
    geometry.add_argument("--block", type=_extents, metavar="X[,Y[,Z]]", help="threads of a block")
    geometry.add_argument("--work", type=_extents, metavar="N", help="threads in all; grid and block are chosen")
    geometry.add_argument(
        "--shared", type=number_of("bytes"), default=0, metavar="BYTES", help="dynamic shared memory of a block"
    )
    geometry.add_argument("--cooperative", action="store_true", help="all blocks run at once, for grid.sync()")
    geometry.add_argument("--cluster", type=_extents, metavar="X[,Y[,Z]]", help="blocks of a cluster")
    add_compile_options(parser)
    parser.set_defaults(run=_run, takes_rest=True)
    kernel.completer = kernels_of_file  # type: ignore[attr-defined]
    file.completer = _cuda_files()  # type: ignore[attr-defined]


def _cuda_files() -> Any:
    if "_ARGCOMPLETE" not in os.environ:
        return None
    try:
        from argcomplete.completers import FilesCompleter
    except ImportError:
        return None
    return FilesCompleter(("cu", "cuh", "cpp"))


def _extents(text: str) -> tuple[int, ...]:
    parts = re.split("[,x]", text)
    if not 1 <= len(parts) <= 3 or not all(part.isdigit() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not one to three numbers such as 4, 4,2 or 4x2")
    return tuple(map(int, parts))


def _run(arguments: argparse.Namespace) -> int:
    if not os.path.exists(arguments.file):
        raise bascule.FileError(f"cannot read the file {arguments.file}: No such file or directory")
    _check_geometry(arguments)
    from bascule._command import results, values

    positional, named = values.split_values(arguments.rest)
    flags = _turn_on_checks(arguments)
    arch = arguments.arch[-1] if arguments.arch else None
    module = bascule.compile(file=arguments.file, options=compile_options(arguments, arch, *flags))
    kernel = _kernel(module, arguments)

    host = [*positional, *named.values()]
    device = [_to_device(value, text) for value, text in zip(host, arguments.rest, strict=True)]
    by_position, by_name = device[: len(positional)], dict(zip(named, device[len(positional) :], strict=True))
    launcher = _launcher(kernel, arguments)
    if arguments.explain:
        print(launcher.explain(*by_position, **by_name))
        return 0

    function = kernel.prepare(*by_position, **by_name) if device else kernel.prepare()
    # Maps the parameter of each array to its host array from before the launch and its device array.
    names = [name for name, _ in function.parameters[: len(positional)]] + list(named)
    passed = {name: pair for name, *pair in zip(names, host, device, strict=False) if hasattr(pair[0], "dtype")}
    files = results.output_files(arguments.out, passed)
    print(f"kernel     {function.signature}")
    print(f"device     {bascule.current_device().name}")
    sys.stdout.flush()  # so that this comes before the kernel's own output
    for _ in range(1 if arguments.time else arguments.repeat or 1):
        launcher(*by_position, **by_name)
    bascule.synchronize()
    _print_launch(arguments)
    results.print_arrays(function, passed, files)
    if arguments.checks:
        print(f"checked    {arguments.checks}: nothing was found")
    if arguments.time:
        print(f"time       {bascule.benchmark(launcher, *by_position, repeat=arguments.repeat or 10, **by_name)}")
    return 0


def _check_geometry(arguments: argparse.Namespace) -> None:
    if arguments.work is not None:
        for name in ("grid", "block", "cluster"):
            if getattr(arguments, name) is not None:
                raise UsageError(
                    f"--work chooses grid and block; leave out --{name}, or give --grid and --block instead"
                )
        if arguments.cooperative:
            raise UsageError("--cooperative needs --grid and --block instead of --work")
        if 0 in arguments.work:
            raise UsageError("--work is 0: there is nothing to launch")
    elif arguments.grid is None or arguments.block is None:
        missing = "--grid" if arguments.grid is None else "--block"
        raise UsageError(f"{missing} is missing: write --grid 4 --block 256, or --work 1000 for that many threads")


def _turn_on_checks(arguments: argparse.Namespace) -> list[str]:
    """Set the environment variables of the checks, which a device reads at first use; return the compiler flags."""
    if arguments.checks is None:
        return []
    require_checks(arguments.checks)
    if os.environ.get("BASCULE_DEVICE") == "cuda":
        raise UsageError("--checks runs on the emulated device, and BASCULE_DEVICE=cuda asks for a GPU; unset it")
    os.environ["BASCULE_DEVICE"] = "emulated"
    os.environ["BASCULE_EMULATED_CHECKS"] = arguments.checks
    return ["--device-debug"] if {"memory", "all"} & set(arguments.checks.split(",")) else []


def _kernel(module: Module, arguments: argparse.Namespace) -> Kernel:
    names = list(module.kernels)
    if arguments.kernel is None and len(names) > 1:
        raise UsageError(f"{arguments.file} has several kernels; name one with -k: {', '.join(names)}")
    kernel = module[arguments.kernel or names[0]]
    return kernel.instantiate(*_split_template(arguments.template)) if arguments.template else kernel


def _split_template(text: str) -> list[str]:
    """Split template arguments at commas outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<([{") - (character in ">)]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    if not all(part.strip() for part in parts):
        raise UsageError(f"-t {text}: a template argument is empty; write -t float,256")
    return [part.strip() for part in parts]


def _to_device(value: Any, argument: str) -> Any:
    if not hasattr(value, "dtype"):
        return value
    # Fault reports name the line that made an array. Use the command-line argument as the file name of that line.
    call = compile("to_device(value)", f"argument {argument}", "eval")
    return eval(call, {"to_device": bascule.to_device, "value": value})


def _launcher(kernel: Kernel, arguments: argparse.Namespace) -> Launcher:
    shared_bytes = arguments.shared
    if arguments.work is not None:
        return kernel.forall(arguments.work, shared_bytes=shared_bytes)
    attributes = {"cooperative": arguments.cooperative, "cluster": arguments.cluster}
    return kernel[bascule.LaunchConfig(arguments.grid, arguments.block, shared_bytes=shared_bytes, **attributes)]


def _print_launch(arguments: argparse.Namespace) -> None:
    times = f", {arguments.repeat} times" if arguments.repeat and not arguments.time else ""
    if arguments.work is not None:
        print(f"launched   {_product(arguments.work, 'thread')} of work{times}")
    else:
        print(f"launched   {_product(arguments.grid, 'block')} of {_product(arguments.block, 'thread')}{times}")


def _product(extents: tuple[int, ...], noun: str) -> str:
    return f"{' x '.join(f'{extent:,}' for extent in extents)} {noun}{'' if prod(extents) == 1 else 's'}"
