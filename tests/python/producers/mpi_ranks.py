"""Two MPI processes exchange arrays that host and device can access; started by test_mpi.py under mpiexec.

    mpiexec -n 2 python -m producers.mpi_ranks KIND        KIND: pinned, managed

Each rank fills its array by a kernel, sends it, receives the other's into another array, computes with that on its
device, and compares with the other rank's values, computed by NumPy. The last line of rank 0 is JSON.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from mpi4py import MPI

import bascule

KERNELS = """
__global__ void fill(double* values, int rank, int n) {
    for (auto i : bascule::grid_stride(n)) values[i] = 1000.0 * rank + i;
}
__global__ void twice(const double* values, double* out, int n) {
    for (auto i : bascule::grid_stride(n)) out[i] = 2 * values[i];
}
"""
COUNT = 10_000


def exchange(kind: str) -> dict[str, object]:
    """Exchanges arrays of this kind with the other rank. Raises AssertionError if any value is wrong."""
    world = MPI.COMM_WORLD
    make = {"pinned": bascule.pinned_array, "managed": bascule.managed_array}[kind]
    module = bascule.compile(KERNELS)
    other = 1 - world.rank
    mine, theirs = make(COUNT, "f8"), make(COUNT, "f8")
    doubled = bascule.to_device(np.full(COUNT, np.nan))
    expected = 1000.0 * other + np.arange(COUNT)

    module.fill[4, 128](mine, world.rank, COUNT)
    bascule.synchronize()  # MPI knows nothing of streams
    world.Sendrecv(mine, dest=other, recvbuf=theirs, source=other)
    module.twice[4, 128](theirs, doubled, COUNT)
    bascule.synchronize()
    assert (theirs.copy_to_host() == expected).all()
    assert (doubled.copy_to_host() == 2 * expected).all()

    world.Allreduce(mine, theirs)  # the host computes with the device's results
    assert (theirs.copy_to_host() == 1000.0 + 2 * np.arange(COUNT)).all()
    return {"rank": world.rank, "ranks": world.size, "kind": kind, "device": str(bascule.current_device())}


def main() -> None:
    outcomes = MPI.COMM_WORLD.gather(exchange(sys.argv[1]))
    if outcomes is not None:
        print(json.dumps({"library": MPI.Get_library_version().splitlines()[0], "ranks": outcomes}), flush=True)


if __name__ == "__main__":
    try:
        main()
    except BaseException as error:
        print(f"rank {MPI.COMM_WORLD.rank}: {error!r}", file=sys.stderr, flush=True)
        MPI.COMM_WORLD.Abort(1)  # otherwise the other rank waits for ever
