"""Objects that have only `__dlpack__`, as arguments of a launch."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import bascule
from dlpack.capsules import CPU, READ_ONLY, Producer
from dlpack.exchanged import HOST, out


@pytest.fixture
def array() -> bascule.DeviceArray:
    return bascule.to_device(HOST)


@pytest.mark.parametrize("versioned", [True, False])
def test_a_launch_takes_what_has_dlpack_alone(emulated, module, array, versioned):
    producer, result = Producer(array, versioned=versioned), out()
    stream = bascule.stream()
    module.copy[1, 8, stream](producer, result)
    assert producer.asked[-1]["stream"] == stream.handle  # the producer must order its work before the launch's stream
    np.testing.assert_array_equal(result.copy_to_host(), HOST)
    bascule.synchronize()
    gc.collect()
    assert producer.deleted == 1
    module.copy[1, 8](producer, result)
    assert producer.asked[-1]["stream"] == 1


def test_a_bound_launch_keeps_the_tensor(module, array):
    producer, result = Producer(array), out()
    bound = module.copy[1, 8].bind(producer, result)
    for _ in range(3):
        bound()
    assert len(producer.asked) == 1
    bascule.synchronize()
    assert producer.deleted == 0
    np.testing.assert_array_equal(result.copy_to_host(), HOST)
    del bound
    bascule.synchronize()
    gc.collect()
    assert producer.deleted == 1


def test_a_read_only_tensor_is_for_const_parameters(module, array):
    def frozen(managed):
        managed.flags = READ_ONLY

    producer = Producer(array, poison=frozen)
    module.copy[1, 8](producer, out())
    with pytest.raises(ValueError, match="argument 2 'out'.*read-only"):
        module.copy[1, 8](array, producer)
    bascule.synchronize()
    gc.collect()
    assert producer.deleted == 2


def test_host_tensors_are_refused_with_a_hint(module):
    class OnHost(Producer):
        device = (CPU, 0)

        @property
        def __cuda_array_interface__(self):
            raise AttributeError("not a CUDA tensor")

    producer = OnHost(bascule.to_device(HOST))
    with pytest.raises(TypeError, match="argument 1 'in'.*bascule.to_device.*not a CUDA tensor"):
        module.copy[1, 8](producer, out())
    assert producer.asked == []
    with pytest.raises(TypeError, match="argument 1 'in'.*bascule.to_device"):
        module.copy[1, 8](HOST, out())
