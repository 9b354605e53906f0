"""Bascule asks for what PyTorch's exchange table does not tell of a tensor; errors name PyTorch's remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from dlpack.exchanged import address, exchange_native

import bascule

TEXT = """
#include <cuda/std/complex>
template <class T> __global__ void read(const T* x, T* out) { out[threadIdx.x] = x[threadIdx.x]; }
template <class T> __global__ void write(T* x) { x[threadIdx.x] = T(1); }
"""
CODES = {"i4": (0, 32), "f2": (2, 16), "f4": (2, 32), "f8": (2, 64), "c8": (5, 64), "c16": (5, 128)}


class Tensor(exchange_native.Tensor):
    """A stand-in with the attribute and the methods that Bascule reads of a torch.Tensor.

    Its DLPack exchange table reads none of them, like that of PyTorch 2.10 (toDLPackNonOwning).
    """

    __module__ = "torch"
    grad = conjugated = negated = False
    asked: ClassVar[list[str]] = []

    @property
    def requires_grad(self) -> bool:
        self.asked.append("requires_grad")
        return self.grad

    def is_conj(self) -> bool:
        self.asked.append("is_conj")
        return self.conjugated

    def is_neg(self) -> bool:
        self.asked.append("is_neg")
        return self.negated


def tensor(dtype: str = "f4", **state: bool) -> Tensor:
    array = bascule.to_device(np.zeros(8, dtype))
    code, bits = CODES[dtype]
    made = Tensor(address(array), (8,), code=code, bits=bits, owner=array)
    made.asked = []
    made.__dict__.update(state)
    return made


@pytest.fixture(scope="module")
def module() -> bascule.Module:
    return bascule.compile(TEXT)


def refused(action: Callable[[], Any], *parts: str) -> None:
    for _ in range(3):  # also when the type is already known
        with pytest.raises(bascule.ArgumentError) as error:
            action()
        for part in ("argument 1 'x'", *parts):
            assert part in str(error.value)


def test_a_kernel_does_not_write_to_a_tensor_that_requires_a_gradient(module):
    x = tensor(grad=True)
    refused(lambda: module.write[1, 8](x), "requires a gradient", "x.detach()", "const")
    refused(lambda: module.write[1, 8].bind(x), "x.detach()")


def test_a_kernel_reads_a_tensor_that_requires_a_gradient(module):
    x, out = tensor(grad=True), tensor()
    for _ in range(3):
        module.read[1, 8](x, out)
    assert "requires_grad" not in x.asked
    assert "requires_grad" in out.asked


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_a_conjugated_tensor_is_refused(module, dtype):
    refused(lambda: module.read[1, 8](tensor(dtype, conjugated=True), tensor(dtype)), "conjugated", "x.resolve_conj()")
    refused(lambda: module.write[1, 8](tensor(dtype, conjugated=True)), "x.resolve_conj()")


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
def test_a_negated_tensor_is_refused(module, dtype):
    refused(lambda: module.read[1, 8](tensor(dtype, negated=True), tensor(dtype)), "negated", "x.resolve_neg()")


def test_only_what_an_element_type_can_have_is_asked(module):
    asked = {}
    for dtype in ("i4", "f4", "c8"):
        x = tensor(dtype)
        module.write[1, 8](x)
        x.asked.clear()
        module.write[1, 8](x)
        asked[dtype] = sorted(x.asked)
    assert asked == {
        "i4": ["requires_grad"],
        "f4": ["is_neg", "requires_grad"],
        "c8": ["is_conj", "is_neg", "requires_grad"],
    }


def test_what_an_attribute_raises_propagates(module):
    class Broken(Tensor):
        @property
        def requires_grad(self) -> bool:
            raise RuntimeError("no autograd here")

    array = bascule.to_device(np.zeros(8, "f4"))
    with pytest.raises(RuntimeError, match="no autograd here"):
        module.write[1, 8](Broken(address(array), (8,), owner=array))


def test_a_type_that_changes_is_looked_at_again(module):
    class Plain(exchange_native.Tensor):
        __module__ = "torch"
        __qualname__ = "Tensor"

    array = bascule.to_device(np.zeros(8, "f4"))
    x = Plain(address(array), (8,), owner=array)
    for _ in range(3):
        module.write[1, 8](x)
    Plain.requires_grad = True
    refused(lambda: module.write[1, 8](x), "x.detach()")
    del Plain.requires_grad
    module.write[1, 8](x)


def test_a_conjugated_tensor_without_a_table_is_refused_too(module):
    """A tensor of PyTorch before 2.9 has only the array interface."""

    class Older:
        def __init__(self, array: bascule.DeviceArray):
            self.array = array

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            return self.array.__cuda_array_interface__

        def is_conj(self) -> bool:
            return True

    x = Older(bascule.to_device(np.zeros(8, "c8")))
    out = bascule.to_device(np.zeros(8, "c8"))
    refused(lambda: module.read[1, 8](x, out), "x.resolve_conj()")
    with pytest.raises(bascule.ArgumentError, match=r"x\.resolve_conj\(\)"):
        bascule.as_cuda_array(x)


def test_torch_itself_has_the_attributes_and_the_table():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: the stand-in above has its attributes")
    x = torch.zeros(4, dtype=torch.complex64, device="meta")
    assert x.conj().is_conj()
    assert x.conj().imag.is_neg()
    assert not x.requires_grad
    assert torch.zeros(4, device="meta", requires_grad=True).requires_grad
    if hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        module = bascule.compile(TEXT)
        for tensor_on_host in (torch.zeros(8), torch.zeros(8, requires_grad=True)):
            with pytest.raises(bascule.ArgumentError, match="argument 1 'x'"):
                module.write[1, 8](tensor_on_host)
