"""One kernel for all blocks of an array larger than any worker's memory, compiled once for all of Dask's workers.

    python samples/dask_blocks.py         needs Dask: pip install "dask[array]" distributed

A kernel is pickled as its text. This process compiles it, and the workers find it in the cache on disk. Each worker has
one of the machine's devices; without GPUs, `BASCULE_EMULATED_DEVICES=2` makes two.
The picture, random pixels, is made, used and discarded in blocks. Each block is compared with NumPy.
"""

import sys
import tempfile

import numpy as np

import bascule

try:
    import dask.array
    from distributed import Client, LocalCluster, get_worker
except ImportError as error:
    sys.exit(f'dask_blocks: {error}; install Dask by: pip install "dask[array]" distributed')

KERNEL = r"""
// Luma of Rec. 709 from red, green and blue.
__global__ void luminance(const unsigned char* rgb, float* out, int pixels) {
    for (auto i : bascule::grid_stride(pixels)) {
        const unsigned char* p = rgb + 3 * i;
        out[i] = (0.2126f * p[0] + 0.7152f * p[1] + 0.0722f * p[2]) / 255;
    }
}
"""
BLOCK, WORKERS = 1000, 2


def device_of(worker):
    """Returns the device of a worker. LocalCluster names its workers 0, 1, ..."""
    return bascule.device(worker.name % bascule.device_count())


def luminance(block, kernel):
    """Runs in a worker: returns the luminance, shape (rows, columns), of a block of shape (rows, columns, 3)."""
    with device_of(get_worker()):
        out = bascule.device_array(block.shape[:2], np.float32)
        kernel.forall(out.size)(bascule.to_device(block), out, out.size)
        return out.copy_to_host()


def by_numpy(block):
    weights = np.array([0.2126, 0.7152, 0.0722], np.float32)
    return sum(weights[colour] * block[..., colour] for colour in range(3)) / np.float32(255)


def compiles():
    """Returns how often NVRTC ran in this process."""
    return bascule.cache.stats().nvrtc_calls


def main():
    device = bascule.current_device()
    print(f"device: {device!r}")
    # A process that uses a GPU takes a few hundred megabytes for its context alone.
    side, limit = (12000, 400_000_000) if device.emulated else (20000, 1_000_000_000)
    rng = dask.array.random.default_rng(1)
    picture = rng.integers(0, 256, (side, side, 3), dtype=np.uint8, chunks=(BLOCK, BLOCK, 3))
    print(f"{picture.npartitions} blocks, {picture.nbytes:,} bytes; a worker may use {limit:,}", flush=True)

    kernel = bascule.compile(KERNEL).luminance.prepare()
    computed = picture.map_blocks(luminance, kernel, dtype=np.float32, drop_axis=2)
    expected = picture.map_blocks(by_numpy, dtype=np.float32, drop_axis=2)
    with (
        tempfile.TemporaryDirectory() as directory,
        LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            memory_limit=limit,
            dashboard_address=None,
            local_directory=directory,
        ) as cluster,
        Client(cluster) as client,
    ):
        mean, worst = dask.compute(computed.mean(dtype=np.float64), abs(computed - expected).max())
        in_workers = sum(client.run(compiles).values())
        devices = sorted(client.run(lambda dask_worker: repr(device_of(dask_worker))).values())
    print(f"the workers' devices: {', '.join(devices)}")
    print(f"compiled {compiles()} times here and {in_workers} times in {WORKERS} workers; mean luminance {mean:.4f}")

    right = worst <= 1e-6  # False for NaN
    print(f"{'ok' if right else 'WRONG':6}luminance differs from NumPy by at most {worst:.1e} (limit 1e-06)")
    if not right:
        sys.exit("dask_blocks: the luminance differs from NumPy's")


if __name__ == "__main__":
    main()
