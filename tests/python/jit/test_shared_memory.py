"""Dynamic shared memory: more than 48 KB is opted in, and more than a block can have is refused with the numbers."""

from __future__ import annotations

import numpy as np
import pytest

import bascule

# Writes words to shared memory, and reads them in reverse order.
REVERSE = """
extern __shared__ int room[];
__global__ void reverse(int* out, int words) {
    for (int i = threadIdx.x; i < words; i += blockDim.x) room[i] = 3 * i + blockIdx.x;
    __syncthreads();
    for (int i = threadIdx.x; i < words; i += blockDim.x) out[blockIdx.x * words + i] = room[words - 1 - i];
}
"""
WITH_STATIC = REVERSE.replace(
    "__global__ void reverse(int* out, int words) {",
    """
__global__ void reverse(int* out, int words) {
    __shared__ int fixed[2500];
    for (int i = threadIdx.x; i < 2500; i += blockDim.x) fixed[i] = -1;
    __syncthreads();
    if (threadIdx.x == 0 && fixed[words % 2500] != -1) out[0] = -1;
""",
)


@pytest.fixture(scope="module", params=[REVERSE, WITH_STATIC], ids=["dynamic", "with static"])
def kernel(request):
    return bascule.compile(request.param).reverse


@pytest.mark.parametrize("shared_bytes", [4, 48 * 1024, 48 * 1024 + 4, 100 * 1024])
def test_a_kernel_has_the_shared_memory_that_it_asks_for(kernel, shared_bytes):
    words = shared_bytes // 4
    out = bascule.to_device(np.full((3, words), -7, "i4"))
    kernel[3, 256, None, shared_bytes](out, words)
    expected = 3 * np.arange(words)[::-1] + np.arange(3)[:, None]
    np.testing.assert_array_equal(out.copy_to_host(), expected)


def test_all_that_the_device_has_beside_the_static_part_can_be_used(kernel):
    attributes = kernel.attributes
    shared_bytes = attributes.max_dynamic_shared_bytes
    if bascule.current_device().emulated:
        assert shared_bytes + attributes.static_shared_bytes == 163 * 1024
    words = shared_bytes // 4
    out = bascule.to_device(np.full((1, words), -7, "i4"))
    kernel[1, 128, None, shared_bytes](out, words)
    np.testing.assert_array_equal(out.copy_to_host()[0], 3 * np.arange(words)[::-1])


def test_more_than_there_is_is_refused_with_what_was_asked_for_and_what_there_is(kernel):
    most = kernel.attributes.max_dynamic_shared_bytes
    out = bascule.to_device(np.full(4, -7, "i4"))
    with pytest.raises(ValueError, match=str(most + 1)) as caught:
        kernel[1, 32, None, most + 1](out, 4)
    assert f"can have {most} bytes" in str(caught.value)
    assert ("besides the 10000 that it declares" in str(caught.value)) == ("fixed" in kernel.source)
    np.testing.assert_array_equal(out.copy_to_host(), np.full(4, -7))


def test_work_with_more_shared_memory_than_a_block_can_have_is_an_error_that_says_so():
    kernel = bascule.compile("__global__ void k() { extern __shared__ int s[]; s[threadIdx.x] = 0; }").k
    with pytest.raises(bascule.ArgumentError, match="shared"):
        kernel.forall(1000, shared_bytes=10**9)()
