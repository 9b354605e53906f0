"""One thread resets the emulated device while others copy and launch: each call happens before or after a reset.

Prints how many rounds were right, ended with the error of a reset, gave wrong values, and ended with another error.
"""

import sys
import threading
import time

import numpy as np

import bascule

TWICE = """__global__ void twice(int* p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = 2 * p[i] + 1;
}"""
VALUES = np.arange(4096, dtype="i4")


def main(seconds: float) -> None:
    twice = bascule.compile(TWICE).twice
    right, refused, wrong, faults = [], [], [], []
    end = threading.Event()

    def work() -> None:
        while not end.is_set():
            try:
                x, y = bascule.to_device(VALUES), bascule.zeros(VALUES.size, "i4")
                twice[16, 256](x, VALUES.size)
                y[:] = x
                got = y.copy_to_host()
            except bascule.CudaError as error:
                (refused if error.code == 709 else faults).append(str(error))
                continue
            (right if np.array_equal(got, 2 * VALUES + 1) else wrong).append("")

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        bascule.emulated.reset()
        time.sleep(0.001)
    end.set()
    for thread in threads:
        thread.join()
    print(len(right), len(refused), len(wrong), len(faults))
    if faults:
        print(faults[0], file=sys.stderr)


main(float(sys.argv[1]))
