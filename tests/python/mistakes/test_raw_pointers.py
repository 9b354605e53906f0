"""A raw pointer takes C-contiguous arrays only, of every library; the message's three alternatives work."""

from __future__ import annotations

import numpy as np
import pytest
from views.arrays import Exposed

import bascule

PLACES = r"""
__global__ void through_pointer(const float* p, int columns, float* sum) {
    if (threadIdx.x == 0) *sum = p[1 * columns + 2];  // row 1, column 2
}
__global__ void through_view(bascule::array_view<const float, 2> p, float* sum) {
    if (threadIdx.x == 0) *sum = p(1, 2);
}
__global__ void add_all(const float* p, int count, float* sum) {
    float total = 0;
    for (int i = 0; i < count; ++i) total += p[i];
    *sum = total;
}
__global__ void any_elements(const void* p) {}
__global__ void vectors(const float4* p) {}
"""
HOST = np.arange(12, dtype="f4").reshape(3, 4)

MAKERS = {
    "an array of ours, transposed": lambda host: bascule.to_device(np.ascontiguousarray(host.T)).T,
    "a Fortran array": lambda host: bascule.to_device(np.asfortranarray(host)),
    "another library's array": lambda host: Exposed(np.asfortranarray(host)),
    "an array imported by DLPack": lambda host: bascule.from_dlpack(bascule.to_device(np.asfortranarray(host))),
}


@pytest.fixture(scope="module")
def module() -> bascule.Module:
    return bascule.compile(PLACES)


@pytest.fixture
def out() -> bascule.DeviceArray:
    return bascule.to_device(np.full(1, -1, "f4"))


@pytest.mark.parametrize("maker", MAKERS)
def test_fortran_order_is_refused_with_the_strides_and_three_alternatives(module, out, maker):
    x = MAKERS[maker](HOST)
    with pytest.raises(ValueError) as caught:
        module.through_pointer[1, 32](x, 4, out)
    message = str(caught.value)
    assert "argument 1 'p'" in message
    assert "shape (3, 4) with strides (4, 12)" in message
    assert "`bascule::array_view<const float, 2>`" in message
    assert "C-contiguous copy" in message
    assert 'x.ravel("K")' in message
    assert 'bascule.as_cuda_array(x).ravel("K")' in message
    assert out.copy_to_host()[0] == -1


@pytest.mark.parametrize("maker", MAKERS)
def test_each_alternative_gives_the_right_answer(module, out, maker):
    x = MAKERS[maker](HOST)
    module.through_view[1, 32](x, out)
    assert out.copy_to_host()[0] == HOST[1, 2]
    module.through_pointer[1, 32](bascule.as_cuda_array(x).copy(), 4, out)
    assert out.copy_to_host()[0] == HOST[1, 2]
    flat = bascule.as_cuda_array(x).ravel("K")
    np.testing.assert_array_equal(flat.copy_to_host(), HOST.ravel("F"))
    module.add_all[1, 1](flat, 12, out)
    assert out.copy_to_host()[0] == HOST.sum()


@pytest.mark.parametrize("host", [HOST[::2], HOST[:, ::2], HOST[::-1], np.broadcast_to(HOST[0], (3, 4))])
def test_an_array_with_gaps_is_refused_and_ravel_is_not_suggested(module, out, host):
    with pytest.raises(bascule.ArgumentError, match="C-contiguous copy") as caught:
        module.through_pointer[1, 32](Exposed(host), 4, out)
    assert f"strides {host.strides}" in str(caught.value)
    assert "ravel" not in str(caught.value)


def test_every_way_to_launch_refuses_it(module, out):
    x = bascule.to_device(HOST).T
    launcher = module.through_pointer[1, 32]
    for refused in (
        lambda: launcher(x, 4, out),
        lambda: launcher.bind(x, 4, out),
        lambda: launcher.explain(x, 4, out),
        lambda: module.through_pointer.forall(1)(x, 4, out),
        lambda: module.through_pointer.launch(1, 32, (x, 4, out)),
        lambda: module.any_elements[1, 1](x),
    ):
        with pytest.raises(bascule.ArgumentError, match=r"strides \(4, 16\)"):
            refused()
    vectors = bascule.to_device(np.zeros((4, 2, 3), "f4")).T.copy("F")  # the last axis is one float4
    with pytest.raises(bascule.ArgumentError, match="last axis"):
        module.vectors[1, 1](vectors)


def test_axes_of_one_element_and_empty_arrays_have_any_strides(module, out):
    column = bascule.to_device(HOST[0])[:, None]
    for x in (column, column.T, bascule.to_device(np.zeros((3, 0, 2), "f4")).T):
        module.any_elements[1, 1](x)
    module.add_all[1, 1](column.T, 4, out)
    assert out.copy_to_host()[0] == HOST[0].sum()


def test_ravel_follows_numpys_orders():
    host = np.arange(24).reshape(2, 3, 4)
    for axes in [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)]:
        x, expected = bascule.to_device(host).transpose(*axes), host.transpose(*axes)
        flat = x.ravel("K")
        np.testing.assert_array_equal(flat.copy_to_host(), expected.ravel("K"))
        assert flat.__cuda_array_interface__["data"] == x.__cuda_array_interface__["data"]
    x = bascule.to_device(host)
    np.testing.assert_array_equal(x.ravel().copy_to_host(), host.ravel())
    np.testing.assert_array_equal(x.T.ravel("F").copy_to_host(), host.T.ravel("F"))
    assert x[:0].ravel("K").shape == (0,)
    for index in [np.s_[:, ::2], np.s_[::-1], np.s_[:, 1:]]:
        with pytest.raises(ValueError, match=r"x\.copy\(\)\.ravel\(\)"):
            x[index].ravel("K")
    with pytest.raises(ValueError, match="'C', 'F' or 'K'"):
        x.ravel("A")


def test_ravel_takes_the_mask_along():
    masked = np.ma.array(HOST, mask=HOST % 5 == 0)
    flat = bascule.to_device(masked).T.ravel("K")
    np.testing.assert_array_equal(flat.copy_to_host(), masked.ravel())
    np.testing.assert_array_equal(flat.copy_to_host().mask, masked.ravel().mask)
