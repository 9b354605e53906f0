from __future__ import annotations

from typing import Any

from cuda.core._launch_config import LaunchConfig
from cuda.core._memory import Buffer
from cuda.core._module import Kernel

import bascule


def launch(stream: Any, config: LaunchConfig, kernel: Kernel, *args: Any) -> None:
    types = (kind for _, kind in kernel.kernel.parameters)
    kernel.kernel.launch(
        config.config.grid,
        config.config.block,
        tuple(argument(arg, kind) for arg, kind in zip(args, types, strict=True)),
        stream=stream.stream,
        shared_bytes=config.config.shared_bytes,
        cooperative=config.config.cooperative,
        cluster=config.cluster,
    )


def argument(value: Any, kind: str) -> Any:
    """Wraps integers and buffers, which cuda.core passes for pointers of any type, as raw pointers."""
    if isinstance(value, Buffer):
        return bascule.raw_pointer(value.handle)
    return bascule.raw_pointer(value) if isinstance(value, int) and kind.endswith("*") else value
