"""cuda.core's string enumerations, as far as the tests name them."""

from enum import StrEnum


class SourceCodeType(StrEnum):
    CXX = "c++"
    PTX = "ptx"
    NVVM = "nvvm"


class ObjectCodeFormatType(StrEnum):
    PTX = "ptx"
    CUBIN = "cubin"
    LTOIR = "ltoir"


class CompilerBackendType(StrEnum):
    NVRTC = "NVRTC"
    NVVM = "NVVM"
    NVJITLINK = "nvJitLink"
    DRIVER = "driver"


class PCHStatusType(StrEnum):
    CREATED = "created"
    NOT_ATTEMPTED = "not_attempted"
    FAILED = "failed"
