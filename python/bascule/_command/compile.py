"""`bascule compile`: PTX, cubin, SASS and signatures of a file's kernels, with or without a driver."""

import argparse
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import bascule
from bascule._bascule import Kernel, Module
from bascule._command.parser import (
    Commands,
    UsageError,
    add_command,
    add_compile_options,
    compile_options,
    counted,
    kernels_of_file,
    print_json,
)
from bascule._new_file import replacing

_EXAMPLES = """\
  bascule compile saxpy.cu                                   # signatures, registers, shared memory
  bascule compile saxpy.cu --arch sm_80 --arch sm_90 -o build/
  bascule compile saxpy.cu --arch sm_90 -o saxpy.cubin
  bascule compile reduce.cu --instance "block_sum<float, 256>" --ptx
  bascule compile saxpy.cu --sass | less"""

_DETAILS = """\
Needs no driver and no GPU. Without -o, PTX and SASS are printed. With -o FILE.ptx, FILE.cubin or FILE.sass that file
is written; with -o DIRECTORY, FILE.ARCH.ptx and FILE.ARCH.cubin, or the kinds that are named.
Without --ptx, --cubin, --sass and -o, every kernel's signature and resources are printed."""

_KINDS = ("ptx", "cubin", "sass")
_DEFAULT_ARCH = "sm_80"


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands,
        "compile",
        "compile a CUDA C++ file to PTX, cubin or SASS, or print its kernels' signatures",
        details=_DETAILS,
        examples=_EXAMPLES,
    )
    parser.add_argument("file", metavar="FILE.cu", help="a file of CUDA C++")
    instance = parser.add_argument(
        "--instance",
        action="append",
        default=[],
        metavar="NAME<ARGS>",
        help="an instance of a template; may be repeated",
    )
    parser.add_argument("-o", "--output", metavar="FILE-OR-DIRECTORY", help="where to write")
    for kind, text in (
        ("ptx", "PTX"),
        ("cubin", "machine code; needs -o"),
        ("sass", "machine code as text; needs nvdisasm or cuobjdump"),
        ("signatures", "kernels, their parameters, registers and shared memory"),
    ):
        parser.add_argument(f"--{kind}", action="store_true", help=text)
    parser.add_argument("--json", action="store_true", help="the signatures as JSON; the keys do not change")
    add_compile_options(parser, several=True)
    parser.set_defaults(run=_compile)
    instance.completer = kernels_of_file  # type: ignore[attr-defined]


def _compile(arguments: argparse.Namespace) -> int:
    kinds = [kind for kind in _KINDS if getattr(arguments, kind)]
    arches = list(dict.fromkeys(arguments.arch)) or [_arch_of_device()]
    files = _Files(arguments, kinds, arches)
    tells = arguments.signatures or arguments.json or not files.kinds
    reports = []
    for arch in arches:
        module = _module(arguments, arch, with_resources=tells)
        # The functions of the image: kernels that are not templates, and instances of templates.
        named = [module[name] for name in dict.fromkeys([*module.kernels, *arguments.instance])]
        kernels = [kernel for kernel in named if not kernel.is_template]
        if files.kinds and not kernels:
            first = next(iter(module.kernels))
            raise UsageError(
                f"{arguments.file} has templates only, so there is no code before one is chosen: "
                f'add --instance "{first}<float>"'
            )
        for kind in files.kinds:
            files.write(kind, arch, kernels[0])
        if tells:
            reports.append({"arch": arch, **_report(module, kernels)})
    if arguments.json:
        nvrtc = bascule._bascule._nvrtc_info()["version"]
        print_json({"file": arguments.file, "nvrtc": nvrtc, "images": reports})
    else:
        for report in reports:
            _print_report(arguments.file, report)
    return 0


def _arch_of_device() -> str:
    try:
        with warnings.catch_warnings(action="ignore", category=bascule.EmulatedDeviceWarning):
            device = bascule.current_device()
        return _DEFAULT_ARCH if device.emulated else bascule._bascule._target(bascule.CompileOptions())
    except bascule.Error:
        return _DEFAULT_ARCH


def _module(arguments: argparse.Namespace, arch: str, *, with_resources: bool) -> Module:
    # ptxas writes each kernel's resources to the log. It does not run for a virtual architecture.
    verbose = ["--ptxas-options=-v"] if with_resources and arch.startswith("sm_") else []
    options = compile_options(arguments, arch, *verbose)
    return bascule.compile(file=arguments.file, options=options, name_expressions=arguments.instance)


class _Files:
    """The output files: decides where each kind of code is written."""

    def __init__(self, arguments: argparse.Namespace, kinds: list[str], arches: list[str]) -> None:
        self._stem = Path(arguments.file).stem
        self._file: Path | None = None
        self._directory: Path | None = None
        self.kinds = kinds
        if arguments.output is None:
            if "cubin" in kinds:
                raise UsageError("--cubin is binary: name a file, such as -o kernels.cubin")
            return
        path = Path(arguments.output)
        kind = path.suffix.removeprefix(".")
        if kind in _KINDS and not path.is_dir():
            if kinds not in ([], [kind]) or len(arches) > 1:
                raise UsageError(f"-o {path} is one file; name a directory for several kinds of code or architectures")
            self.kinds, self._file = [kind], path
        elif len(kinds) == 1 and len(arches) == 1 and not path.is_dir() and not arguments.output.endswith("/"):
            self._file = path
        else:
            self._directory = path
            self.kinds = kinds or ["ptx", "cubin"]
        if self._file and not self._file.parent.is_dir():
            raise UsageError(f"-o {path}: there is no directory {self._file.parent}")

    def write(self, kind: str, arch: str, kernel: Kernel) -> None:
        """Write or print one kind of code of the kernel's image."""
        if kind != "ptx" and not arch.startswith("sm_"):
            if self._directory and kind == "cubin":
                return
            raise UsageError(
                f"{arch} is a virtual architecture, which has PTX alone; name a real one such as --arch sm_90"
            )
        code = kernel.ptx if kind == "ptx" else kernel.cubin
        if kind == "sass":
            from bascule._command.disassembly import disassemble

            code = disassemble(kernel.cubin)
        path = self._file
        if self._directory:
            self._directory.mkdir(parents=True, exist_ok=True)
            path = self._directory / f"{self._stem}.{arch}.{kind}"
        if path is None:
            print(code.rstrip("\n\0"))  # type: ignore[arg-type]
            return
        contents = code if isinstance(code, bytes) else code.rstrip("\0").encode(errors="surrogateescape")
        if self._directory:
            with replacing(path) as file:
                file.write(contents)
        else:
            path.write_bytes(contents)
        print(f"wrote {path}, {path.stat().st_size:,} bytes", file=sys.stderr)


_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)'")
_RESOURCES = (
    ("registers", re.compile(r"Used (\d+) registers")),
    ("static_shared_bytes", re.compile(r"(\d+) bytes smem")),
    ("stack_bytes", re.compile(r"(\d+) bytes stack frame")),
    ("spill_store_bytes", re.compile(r"(\d+) bytes spill stores")),
    ("spill_load_bytes", re.compile(r"(\d+) bytes spill loads")),
)


def _report(module: Module, kernels: list[Kernel]) -> dict[str, Any]:
    resources = _resources(kernels[0].log) if kernels else {}
    rows = [
        {
            **{key: getattr(kernel, key) for key in ("name", "signature", "lowered_name")},
            "parameters": [{"name": name, "type": spelling} for name, spelling in kernel.parameters],
            "resources": resources.get(kernel.lowered_name),
        }
        for kernel in kernels
    ]
    templates = [name for name in module.kernels if module[name].is_template]
    return {"kernels": rows, "templates": [{"name": each, "signature": module[each].signature} for each in templates]}


def _resources(log: str) -> dict[str, dict[str, int]]:
    """Map each function's lowered name to the resources that ptxas reported."""
    found: dict[str, dict[str, int]] = {}
    entries = list(_ENTRY.finditer(log))
    for i, entry in enumerate(entries):
        said = log[entry.end() : entries[i + 1].start() if i + 1 < len(entries) else len(log)]
        matches = ((key, pattern.search(said)) for key, pattern in _RESOURCES)
        found[entry["name"]] = {key: int(match[1]) if match else 0 for key, match in matches}
    return found


def _print_report(file: str, report: dict[str, Any]) -> None:
    print(f"{file} for {report['arch']}: {counted(len(report['kernels']), 'kernel')}")
    for kernel in report["kernels"]:
        print(f"  {kernel['signature']}")
        if used := kernel["resources"]:
            spilled = used["spill_store_bytes"] + used["spill_load_bytes"]
            print(
                f"    {used['registers']} registers, {used['static_shared_bytes']:,} bytes of static shared memory, "
                f"{used['stack_bytes']:,} bytes of stack, {f'{spilled:,} bytes' if spilled else 'nothing'} spilled"
            )
        print(f"    in the image: {kernel['lowered_name']}")
    instantiated = {kernel["name"] for kernel in report["kernels"]}
    for template in report["templates"]:
        if template["name"] not in instantiated:
            print(f"  {template['signature']}")
            print(f'    no code before an instance is named: --instance "{template["name"]}<float>"')
