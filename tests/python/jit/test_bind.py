"""kernel[grid, block].bind: arguments checked once, launched many times."""

import numpy as np
import pytest

import bascule

TEXT = """
__global__ void add(float* p, float v) { p[threadIdx.x] += v; }
template <class T> __global__ void scale(T* p, T v) { p[threadIdx.x] *= v; }
"""


@pytest.fixture
def module():
    return bascule.compile(TEXT)


def ones(dtype="f4", n=8):
    return bascule.to_device(np.ones(n, dtype))


def test_a_bound_launch_launches_as_often_as_it_is_called(module):
    p = ones()
    bound = module.add[1, 8].bind(p, 2)
    for _ in range(3):
        bound()
    np.testing.assert_array_equal(p.copy_to_host(), np.full(8, 7, "f4"))
    assert "add" in repr(bound)


def test_a_template_is_chosen_when_it_is_bound(module):
    p = ones("i4")
    bound = module.scale[1, 8].bind(v=3, p=p)
    before = bascule.cache.stats().nvrtc_calls
    bound()
    bound()
    assert bascule.cache.stats().nvrtc_calls == before
    np.testing.assert_array_equal(p.copy_to_host(), np.full(8, 9, "i4"))


def test_arguments_are_checked_when_they_are_bound(module):
    with pytest.raises(TypeError, match=r"argument 1 'p'.*float64"):
        module.add[1, 8].bind(ones("f8"), 2)
    with pytest.raises(TypeError, match="takes 2 arguments"):
        module.add[1, 8].bind(ones())
    with pytest.raises(TypeError, match="takes no arguments"):
        module.add[1, 8].bind(ones(), 1)(3)


def test_binding_reads_the_interface_once_and_launching_not_at_all(module):
    class Producer:
        reads = 0

        def __init__(self, array):
            self.array = array

        @property
        def __cuda_array_interface__(self):
            Producer.reads += 1
            return self.array.__cuda_array_interface__

    p = ones()
    bound = module.add[1, 8].bind(Producer(p), 1)
    bound()
    bound()
    assert Producer.reads == 1
    bound.rebind()
    assert Producer.reads == 2
    bound()
    np.testing.assert_array_equal(p.copy_to_host(), np.full(8, 4, "f4"))


def test_rebind_takes_other_arguments_and_keeps_the_old_ones_when_one_is_refused(module):
    p, q = ones(), ones()
    bound = module.add[1, 8].bind(p, 1)
    bound.rebind(q, v=5)
    bound()
    with pytest.raises(TypeError, match="'p'"):
        bound.rebind(ones("f8"), 1)
    bound()
    assert (p.copy_to_host()[0], q.copy_to_host()[0]) == (1, 11)


def test_binding_over_no_work_launches_nothing(module):
    p = ones()
    module.add.forall(0).bind(p, 1)()
    np.testing.assert_array_equal(p.copy_to_host(), np.ones(8, "f4"))
