from __future__ import annotations

from cuda.core._module import ObjectCode
from cuda.core._program import ProgramOptions, code_of, flags_of
from cuda.core.typing import CompilerBackendType

import bascule


class LinkerOptions(ProgramOptions):
    """Options without those that Bascule's linker lacks, such as that of optimizing, which needs machine code."""

    def flags(self) -> list[str]:
        without = {"verbose", "optimization_level"}
        return [flag for name, value in self.options.items() if name not in without for flag in flags_of(name, value)]


class Linker:
    def __init__(self, *codes: ObjectCode, options: LinkerOptions | None = None) -> None:
        if not codes:
            raise ValueError("At least one ObjectCode object must be provided")
        self.codes = codes
        self.options = options or LinkerOptions()

    @classmethod
    def which_backend(cls) -> CompilerBackendType:
        """The driver, because the emulated device links PTX."""
        return CompilerBackendType.DRIVER

    def link(self, target_type: str) -> ObjectCode:
        parts = [code.code if code.module is None else code.module for code in self.codes]
        module = bascule.link(parts, options=self.options.flags())
        kernel = module[next(iter(module.kernels))]
        return ObjectCode(module, target_type, code_of(kernel, target_type), name=self.options.name)

    def get_info_log(self) -> str:
        return ""

    def get_error_log(self) -> str:
        return ""


def _decide_nvjitlink_or_driver() -> bool:
    """Returns True: the driver links."""
    return True
