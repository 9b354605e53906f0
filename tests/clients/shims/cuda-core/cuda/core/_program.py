from __future__ import annotations

from typing import Any

from cuda.core._module import ObjectCode
from cuda.core.typing import CompilerBackendType

import bascule

# Options of cuda.core whose NVRTC flag is not simply their name with hyphens.
NVRTC_NAMES = {
    "arch": "-arch",
    "debug": "--device-debug",
    "device_code_optimize": "--dopt=on",
    "fma": "--fmad",
    "lineinfo": "--generate-line-info",
    "link_time_optimization": "--dlink-time-opt",
    "max_register_count": "--maxrregcount",
    "ofast_compile": "--Ofast-compile",
    "use_fast_math": "--use_fast_math",
}
# Options whose flag takes `true` or `false`; the other flags are switches.
TRUE_OR_FALSE = {
    "brief_diagnostics",
    "builtin_initializer_list",
    "builtin_move_forward",
    "fma",
    "ftz",
    "instantiate_templates_in_pch",
    "pch_messages",
    "pch_verbose",
    "prec_div",
    "prec_sqrt",
    "relocatable_device_code",
}


class ProgramOptions:
    def __init__(self, name: str = "default_program", **options: Any) -> None:
        self.name = name
        self.options = options

    def as_bytes(self, backend: str) -> list[bytes]:
        return [flag.encode() for flag in self.flags()]

    def flags(self) -> list[str]:
        return [flag for name, value in self.options.items() for flag in flags_of(name, value)]


def flags_of(name: str, value: Any) -> list[str]:
    flag = NVRTC_NAMES.get(name, "--" + name.replace("_", "-"))
    if isinstance(value, bool):
        if name in TRUE_OR_FALSE:
            return [f"{flag}={str(value).lower()}"]
        return [flag] if value else []
    if name == "define_macro":
        macros = value if isinstance(value, list) else [value]
        return [f"{flag}={macro if isinstance(macro, str) else '='.join(macro)}" for macro in macros]
    values = value if isinstance(value, list | tuple) else [] if value is None else [value]
    return [f"{flag}={each}" for each in values]


class Program:
    """A text, and the module compiled from it, if it is not relocatable."""

    def __init__(self, code: str, code_type: str, options: Any = None) -> None:
        options = ProgramOptions(**options) if isinstance(options, dict) else options or ProgramOptions()
        self.code = code
        self.options = options
        self.backend = {"c++": CompilerBackendType.NVRTC, "ptx": CompilerBackendType.DRIVER}[code_type.lower()]
        self.module = None  # for relocatable texts, which Bascule's linker compiles
        if self.backend == CompilerBackendType.DRIVER:
            self.module = bascule.load_module(code.encode(), name=options.name)
        elif "relocatable_device_code" not in options.options:
            self.module = bascule.compile(code, options=options.flags())

    def close(self) -> None:
        pass

    def compile(self, target_type: str, name_expressions: tuple[str, ...] = ()) -> ObjectCode:
        module = self.module
        if module is None:
            return ObjectCode(module, target_type, self.code, name=self.options.name)
        if name_expressions:
            module = bascule.compile(self.code, options=self.options.flags(), name_expressions=name_expressions)
        wanted = list(name_expressions) or list(module.kernels)
        kernels = {name: module[name] for name in wanted}
        code = code_of(next(iter(kernels.values())), target_type)
        names = {name: kernel.lowered_name.encode() for name, kernel in kernels.items()} if name_expressions else {}
        return ObjectCode(module, target_type, code, name=self.options.name, names=names)


def code_of(kernel: bascule.Kernel, target_type: str) -> bytes:
    return {"ptx": lambda: kernel.ptx.encode(), "cubin": lambda: kernel.cubin}[target_type]()


def _can_load_generated_ptx() -> bool:
    return True


def _get_nvvm_module() -> None:
    raise RuntimeError("Bascule compiles CUDA C++, and no NVVM IR")
