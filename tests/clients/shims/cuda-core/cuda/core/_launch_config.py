from __future__ import annotations

import types
from typing import Any

import bascule

Triple = tuple[int, int, int]


def triple(given: Any) -> Any:
    given = (given,) if isinstance(given, int) else tuple(given)
    return (*given, 1, 1)[:3]


class LaunchConfig:
    """If there are clusters, cuda.core's grids consist of clusters, and Bascule's of blocks."""

    def __init__(
        self,
        grid: Any = None,
        cluster: Any = None,
        block: Any = None,
        shmem_size: int = 0,
        is_cooperative: bool = False,
    ) -> None:
        self.grid: Triple = triple(grid)
        self.cluster: Triple | None = None if cluster is None else triple(cluster)
        blocks = tuple(x * y for x, y in zip(self.grid, self.cluster or (1, 1, 1), strict=True))
        self.config = bascule.LaunchConfig(
            blocks, block, shared_bytes=shmem_size, cooperative=is_cooperative, cluster=self.cluster
        )

    @property
    def block(self) -> Triple:
        return self.config.block

    @property
    def shmem_size(self) -> int:
        return self.config.shared_bytes


def _to_native_launch_config(config: LaunchConfig) -> types.SimpleNamespace:
    x, y, z = config.config.grid
    return types.SimpleNamespace(gridDimX=x, gridDimY=y, gridDimZ=z)
