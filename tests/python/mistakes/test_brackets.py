"""What people write in the brackets of a launch: Triton's one tuple, a function, shared bytes as the stream."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import bascule

TEXT = "__global__ void k(float* x) { x[blockIdx.x] = blockDim.x; }"


@pytest.fixture(scope="module")
def kernel() -> bascule.Kernel:
    return bascule.compile(TEXT).k


@pytest.fixture
def x() -> bascule.DeviceArray:
    return bascule.to_device(np.zeros(16, "f4"))


def test_one_tuple_in_parentheses_is_refused_with_both_ways_to_write_it(kernel, x):
    with pytest.raises(TypeError, match="one tuple in the brackets") as caught:
        kernel[(4, 4)](x)
    assert "kernel[(4, 4), block]" in str(caught.value)
    assert "kernel[4, 4] for a grid of 4 and a block of 4" in str(caught.value)
    n = 2
    for refused in (lambda: kernel[(n, n * 2)], lambda: kernel[ ( 4,
        4 ) ](x), lambda: kernel[(4, 4, None)]):  # fmt: skip
        with pytest.raises(TypeError, match="one tuple in the brackets"):
            refused()


def test_a_grid_and_a_block_are_not_mistaken_for_one_tuple(kernel, x):
    grid, n = (4, 32), 4
    kernel[4, 32](x)
    kernel[(4), (32)](x)
    kernel[(n), 32](x)
    kernel[(4,), (32,)](x)
    kernel[(4, 1), (32, 1)](x)
    kernel[grid](x)
    kernel[
        (n + 1) // 1 - 1,
        (32),
    ](x)
    assert (x.copy_to_host()[:4] == 32).all()


def test_a_line_without_text_is_taken_as_it_is(kernel):
    places = {"kernel": kernel}
    exec("launcher = kernel[(4, 4)]", places)
    assert "[(4,), (4,)]" in repr(places["launcher"])
    text = "launcher = kernel[(4, 4)]"
    linecache.cache["<cell>"] = (len(text), None, [text], "<cell>")
    with pytest.raises(TypeError, match="one tuple in the brackets"):
        exec(compile(text, "<cell>", "exec"), places)


def test_a_decorated_kernel_refuses_it_too():
    @bascule.kernel(TEXT)
    def k(x):
        return x.size

    with pytest.raises(TypeError, match="one tuple in the brackets"):
        k[(4, 4)]
    assert "(4,), (4,)" in repr(k[4, 4])


@pytest.mark.parametrize("key", [4, (4,), ((4, 4),), (4, 4, None, 0, 0), [4, 4], "4"], ids=repr)
def test_a_missing_block_is_named_with_an_example(kernel, key):
    with pytest.raises(TypeError, match=r"such as kernel\[\(4, 4\), 256\]; got ") as caught:
        kernel[key]
    assert repr(key) in str(caught.value)


def test_a_function_for_the_grid_leads_to_launch_rules(kernel):
    with pytest.raises(TypeError, match=r"got a function\. .*kernel\.forall\(n\).*@bascule\.kernel"):
        kernel[lambda meta: (4,)]


@pytest.mark.parametrize("number", [3, 48, 256, 49152, 232448])
def test_shared_bytes_as_the_third_entry_are_said_to_be_the_fourth(kernel, number):
    with pytest.raises(ValueError, match="third entry in the brackets is the stream") as caught:
        kernel[2, (8, 8), number]
    assert f"kernel[2, (8, 8), None, {number}]" in str(caught.value)


def test_handles_are_still_streams(kernel, x):
    stream = bascule.stream()
    for given in (0, 1, 2, stream.handle, stream, None):
        kernel[4, 32, given](x)
    for wrong in (-1, 2**64, 2**70):
        with pytest.raises(ValueError, match=r"handle from 0 to 2\*\*64 - 1"):
            kernel[4, 32, wrong]
