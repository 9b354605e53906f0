"""Heat in a plate that two MPI processes share: each computes half of the rows and sends its border row to the other.

    python samples/mpi_halo.py         needs MPI: pip install mpi4py mpich

It starts itself again as `mpiexec -n 2`; more ranks work too (`mpiexec -n 3 python samples/mpi_halo.py`). Rows are in
managed memory: the device computes there, and any MPI library can send from it. Each rank of a machine has one of its
devices; without GPUs, `BASCULE_EMULATED_DEVICES=2` makes two. The result must be that of one process, bit for bit.
"""

import os
import shutil
import sys
from pathlib import Path

import numpy as np

import bascule

try:
    from mpi4py import MPI
except ImportError as error:
    sys.exit(f"mpi_halo: {error}; install mpi4py and an MPI library by: pip install mpi4py mpich")

KERNEL = r"""
// One explicit step of the heat equation; the border of the array keeps its values.
__global__ void step(bascule::array_view<const float, 2> now, bascule::array_view<float, 2> next, float diffusion) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (y >= now.extent(0) || x >= now.extent(1)) return;
    const bool border = x == 0 || y == 0 || x == now.extent(1) - 1 || y == now.extent(0) - 1;
    next(y, x) = border ? now(y, x)
                        : now(y, x) + diffusion * (now(y, x - 1) + now(y, x + 1) + now(y - 1, x) + now(y + 1, x) -
                                                   4 * now(y, x));
}
"""
ROWS, COLUMNS, STEPS, DIFFUSION, BLOCK = 96, 128, 40, 0.2, (32, 4)


def plate():
    """Temperatures in degrees Celsius, shape (ROWS, COLUMNS): a hot disc, which spans both halves."""
    y, x = np.ogrid[:ROWS, :COLUMNS]
    return np.where((y - ROWS / 2) ** 2 + (x - COLUMNS / 3) ** 2 < 400, 100, 20).astype(np.float32)


def rows_of(world):
    """The first row of a rank and the row after its last, without the row on each side that a neighbour computes."""
    return world.rank * ROWS // world.size, (world.rank + 1) * ROWS // world.size


def simulate(world):
    """The rows of this rank after all steps."""
    first, end = rows_of(world)
    above, below = int(world.rank > 0), int(world.rank < world.size - 1)  # rows of neighbours
    part = plate()[first - above : end + below]
    now, following = (bascule.managed_array(part.shape, np.float32) for _ in range(2))
    for array in (now, following):
        array.copy_from_host(part)
    step = bascule.compile(KERNEL).step
    grid = (-(-COLUMNS // BLOCK[0]), -(-part.shape[0] // BLOCK[1]))
    for _ in range(STEPS):
        step[grid, BLOCK](now, following, DIFFUSION)
        now, following = following, now
        bascule.synchronize()  # MPI knows nothing of streams
        # Down: a rank's last row becomes the row above those of the next rank. Then up, in the same way. The first and
        # the last rank have one neighbour only, and PROC_NULL in place of the other.
        up, down = (world.rank - 1 if above else MPI.PROC_NULL), (world.rank + 1 if below else MPI.PROC_NULL)
        world.Sendrecv(now[-1 - below], dest=down, recvbuf=now[0], source=up)
        world.Sendrecv(now[above], dest=up, recvbuf=now[-1], source=down)
    return now.copy_to_host()[above : part.shape[0] - below]


def main():
    world = MPI.COMM_WORLD
    if world.size == 1:  # not started by mpiexec
        beside = Path(sys.executable).with_name("mpiexec")  # where pip puts it
        mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
        if mpiexec is None:
            sys.exit("mpi_halo: there is no mpiexec; install an MPI library, for example by: pip install mpich")
        MPI.Finalize()
        os.execv(mpiexec, [mpiexec, "-n", "2", sys.executable, __file__])

    local_rank = world.Split_type(MPI.COMM_TYPE_SHARED).rank  # counts the ranks of this machine
    with bascule.device(local_rank % bascule.device_count()) as device:
        mine = simulate(world)
        alone = simulate(MPI.COMM_SELF) if world.rank == 0 else None
    parts = world.gather(mine)
    places = world.gather(f"rank {world.rank} of {world.size}: rows {rows_of(world)} on {device!r}")
    differing = 0
    if alone is not None:
        print(*places, sep="\n")
        together = np.vstack(parts)
        differing = int((together != alone).sum()) + (together.shape != alone.shape)
        print(
            f"{'WRONG' if differing else 'ok':6}{differing} of {alone.size} temperatures differ from one rank's result"
        )
    if world.bcast(differing):
        sys.exit("mpi_halo: the ranks together compute something else than one rank alone")


if __name__ == "__main__":
    main()
