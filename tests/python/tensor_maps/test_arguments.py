"""Tensor maps as arguments: accepted parameters, ordering, bound launches, and the objects that they keep alive."""

from __future__ import annotations

import gc
import re
import weakref

import numpy as np
import pytest
from conftest import ForeignArray, require_tensor_maps
from dlpack.exchanged import address, exchange_native

import bascule

pytestmark = pytest.mark.usefixtures("hopper")

SOURCE = """
#include <cuda.h>
struct Unaligned { char bytes[128]; };
struct alignas(64) Other { char bytes[128]; };
__device__ void give(const void* map, unsigned long long* out) {
    out[threadIdx.x] = static_cast<const unsigned long long*>(map)[threadIdx.x];
}
__global__ void value(const __grid_constant__ CUtensorMap map, unsigned long long* out) { give(&map, out); }
__global__ void other(const __grid_constant__ Other map, unsigned long long* out) { give(&map, out); }
__global__ void pointer(const CUtensorMap* map, unsigned long long* out) { give(map, out); }
__global__ void untyped(const void* map, unsigned long long* out) { give(map, out); }
__global__ void writable(CUtensorMap* map) {}
__global__ void unaligned(Unaligned map) {}
__global__ void array(const float* x) {}
__global__ void number(int n) {}
template <class T>
__global__ void typed(const __grid_constant__ CUtensorMap map, const CUtensorMap* other, T* out) {
    out[threadIdx.x] = map.opaque[threadIdx.x] == other->opaque[threadIdx.x];
}
__global__ void fill(float* p, float with) { p[threadIdx.x] = with; }
"""


@pytest.fixture(scope="module")
def module() -> bascule.Module:
    require_tensor_maps()  # before the text is compiled, which needs this compute capability too
    return bascule.compile(SOURCE)


def image(stream: bascule.Stream | None = None) -> bascule.DeviceArray:
    return bascule.to_device(np.ones((4, 32), "f4"), stream=stream)


def words() -> bascule.DeviceArray:
    return bascule.zeros(16, "u8")


def encoded(map: bascule.TensorMap) -> list[int]:
    return np.frombuffer(map.encoded, "u8").tolist()


def test_its_attributes_say_what_it_was_made_of() -> None:
    x = image()
    map = bascule.tensor_map(x, [2, 16], swizzle=64, l2_promotion=128, fill="nan", element_strides=(2, 1))
    assert (map.array, map.box, map.bytes, map.shape) == (x, (2, 16), 64, (4, 32))
    assert (map.dtype, map.element_strides, map.swizzle) == (np.dtype("f4"), (2, 1), 64)
    assert (map.interleave, map.l2_promotion, map.fill, map.im2col) == (None, 128, "nan", None)
    assert map.device == x.device
    assert re.fullmatch(
        r"<bascule\.TensorMap of a float32 array of shape \(4, 32\), box \(2, 16\), swizzle 64, l2_promotion 128, "
        r"fill nan, on .*>",
        repr(map),
    )
    pixels = bascule.tensor_map(bascule.zeros((1, 8, 8, 16), "f2"), (8, 16), im2col=((-1, -2), (1, 0)))
    assert (pixels.im2col, pixels.box, pixels.bytes) == (((-1, -2), (1, 0)), (8, 16), 256)
    assert "pixels and channels (8, 16)" in repr(pixels)


def test_numbers_of_a_map_are_defines() -> None:
    map = bascule.tensor_map(image(), (4, 32))
    options = bascule.CompileOptions(defines={"BYTES": map.bytes, "ROWS": map.box[0]})
    kernel = bascule.compile("__global__ void k(int* out) { *out = BYTES + ROWS; }", options=options).k
    out = bascule.zeros(1, "i4")
    kernel[1, 1](out)
    assert out.item() == 4 * 32 * 4 + 4


@pytest.mark.parametrize("name", ["value", "other", "pointer", "untyped"])
def test_parameters_get_the_map(module, name) -> None:
    for array in (image(), ForeignArray(image()), image()[:2], image()[:, :16]):
        map, out = bascule.tensor_map(array, (2, 16)), words()
        module[name][1, 16](map, out)
        assert out.copy_to_host().tolist() == encoded(map)


def test_templates_are_chosen_beside_a_map(module) -> None:
    map, out = bascule.tensor_map(image(), (2, 16)), bascule.zeros(16, "i4")
    module.typed[1, 16](map, map, out)
    assert (out.copy_to_host() == 1).all()


@pytest.mark.parametrize("given", [3, 2.5, None, image, b"123", "map", np.float32(3)])
def test_other_arguments_are_told_how_to_make_a_map(module, given) -> None:
    given = given() if callable(given) else given
    with pytest.raises(bascule.ArgumentError, match=r"argument 1 'map'.*CUtensorMap") as error:
        module.value[1, 16](given, words())
    assert re.search(r"bascule\.tensor_map\(array, box\)|exactly 128 bytes", str(error.value))


def test_an_array_for_a_pointer_is_told_so_too(module) -> None:
    with pytest.raises(bascule.ArgumentTypeError, match=r"bascule\.tensor_map\(array, box\)"):
        module.pointer[1, 16](image(), words())


def test_bytes_and_arrays_of_maps_are_taken_as_for_any_struct(module) -> None:
    map, out = bascule.tensor_map(image(), (2, 16)), words()
    module.value[1, 16](map.encoded, out)
    assert out.copy_to_host().tolist() == encoded(map)
    maps = bascule.to_device(np.frombuffer(map.encoded * 2, "V128"))
    module.pointer[1, 16](maps, out)
    assert out.copy_to_host().tolist() == encoded(map)


def test_parameters_that_take_no_map_say_why(module) -> None:
    map = bascule.tensor_map(image(), (2, 16))
    for name in ("array", "number"):
        with pytest.raises(bascule.ArgumentTypeError, match=r"`const __grid_constant__ CUtensorMap`"):
            module[name][1, 1](map)
    with pytest.raises(bascule.ArgumentTypeError, match="declare the pointer const"):
        module.writable[1, 1](map)
    with pytest.raises(bascule.ArgumentTypeError, match=r"declare it alignas\(64\)"):
        module.unaligned[1, 1](map)


@pytest.mark.parametrize("name", ["value", "pointer"])
def test_the_launch_is_ordered_with_the_stream_of_the_array(module, name) -> None:
    launched = bascule.stream()
    for own in (True, False):
        produced = bascule.stream()
        source = image(stream=produced)
        map = bascule.tensor_map(source if own else ForeignArray(source), (2, 16))
        module[name].prepare()
        text = str(module[name][1, 16, launched].explain(map, words()))
        assert "the tensor map of a float32 array of shape (4, 32), box (2, 16)" in text
        assert "wait" in text.split("'map'")[1].split("'out'")[0]
        out = words()
        module[name][1, 16, launched](map, out)
        assert out.copy_to_host().tolist() == encoded(map)
        ignored = str(module[name][1, 16, launched].options(sync=False).explain(map, words()))
        assert "before the launch: nothing is waited for" in ignored


class Moving:
    """An array whose memory and extents may change, as those of a resized tensor."""

    def __init__(self, array: bascule.DeviceArray) -> None:
        self.array = array

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return self.array.__cuda_array_interface__


@pytest.mark.parametrize("name", ["value", "pointer"])
def test_a_launch_reads_the_interface_once(module, name) -> None:
    source, other, out = ForeignArray(image()), image(), words()
    map = bascule.tensor_map(source, (2, 16))
    fields = dict(other.__cuda_array_interface__)
    # As it was made, by the fast path, at another address, with strides, without a stream, and by other words.
    for changes in ({}, {}, {"data": fields["data"]}, {"strides": (128, 4)}, {"version": 2, "stream": None}, {}):
        source.changes, before = changes, source.reads
        module[name][1, 16].options(sync="version" not in changes)(map, out)
        assert source.reads == before + 1
        assert out.copy_to_host().tolist() == encoded(map)
    assert map.array is source

    def lost(self: ForeignArray) -> None:
        source.reads += 1
        raise AttributeError("freed")

    before, source.__class__ = source.reads, type("Lost", (ForeignArray,), {"__cuda_array_interface__": property(lost)})
    for _ in range(2):
        with pytest.raises(bascule.ArgumentError, match="the array of the tensor map has lost its memory"):
            module[name][1, 16](map, out)
    assert source.reads == before + 2


@pytest.mark.parametrize("name", ["value", "pointer"])
def test_it_is_encoded_again_when_the_array_has_moved(module, name) -> None:
    moving = Moving(image())
    map, out = bascule.tensor_map(moving, (2, 16)), words()
    first = encoded(map)
    bound = module[name][1, 16].bind(map, out)
    for changed in (image(), bascule.zeros((8, 32), "f4"), bascule.zeros((8, 64), "f4")[:, :32]):
        before, moving.array = encoded(map), changed
        module[name][1, 16](map, out)
        assert out.copy_to_host().tolist() == encoded(map) != before
        assert map.shape == changed.shape
    bound()  # as it was bound
    assert out.copy_to_host().tolist() == first
    bound.rebind()
    bound()
    assert out.copy_to_host().tolist() == encoded(map)


def test_a_moved_array_obeys_the_rules_again(module) -> None:
    moving = Moving(image())
    map = bascule.tensor_map(moving, (2, 16))
    moving.array = bascule.zeros((4, 5), "f4")
    with pytest.raises(bascule.ArgumentError, match=r"argument 1 'map': the elements of axis 0 are 20 bytes apart"):
        module.value[1, 16](map, words())
    for changed in (bascule.zeros((4, 32), "i4"), bascule.zeros((4, 4, 32), "f4")):
        moving.array = changed
        with pytest.raises(bascule.ArgumentError, match="the tensor map was made of .* make it again"):
            module.value[1, 16](map, words())
    moving.__class__ = type("Host", (), {})
    with pytest.raises(bascule.ArgumentError, match="argument 1 'map': the array of the tensor map"):
        module.value[1, 16](map, words())


def test_a_map_keeps_its_array_and_a_launch_keeps_both(module) -> None:
    source = ForeignArray(image())
    alive = weakref.ref(source)
    map, out = bascule.tensor_map(source, (2, 16)), words()
    expected = encoded(map)
    stream = bascule.stream()
    bound = [module[name][1, 16, stream].bind(map, out) for name in ("value", "pointer")]
    for name in ("value", "pointer"):
        module[name][1, 16, stream](map, out)
    del map, source
    gc.collect()
    assert alive() is not None
    for each in bound:
        each()
    assert out.copy_to_host().tolist() == expected
    del bound, each
    stream.synchronize()
    for _ in range(3):
        module.fill[1, 1, stream](bascule.zeros(1, "f4"), 1)
        stream.synchronize()
    bascule.synchronize()
    gc.collect()
    assert alive() is None


def test_a_graph_keeps_the_copy_in_device_memory(module) -> None:
    moving = Moving(image())
    map, out = bascule.tensor_map(moving, (2, 16)), words()
    with bascule.Graph() as graph:
        module.pointer[1, 16](map, out)
    expected = encoded(map)
    moving.array = image()
    module.pointer[1, 16](map, words())
    del map
    gc.collect()
    graph.launch()
    assert out.copy_to_host().tolist() == expected


def test_read_only_arrays_have_maps(module) -> None:
    array = image()
    source = ForeignArray(array, data=(array.__cuda_array_interface__["data"][0], True))
    map, out = bascule.tensor_map(source, (2, 16)), words()
    module.value[1, 16](map, out)
    assert out.copy_to_host().tolist() == encoded(map)


def test_arrays_of_dlpack_alone_have_maps(module) -> None:
    class Tensor:
        def __init__(self, array: bascule.DeviceArray) -> None:
            self.array = array

        def __dlpack__(self, **options: object) -> object:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    map, out = bascule.tensor_map(Tensor(image()), (2, 16)), words()
    module.value[1, 16](map, out)
    assert out.copy_to_host().tolist() == encoded(map)


@pytest.mark.parametrize(("code", "bits"), [(2, 32), (4, 16), (10, 8), (6, 8)])
def test_a_tensor_of_an_exchange_table_is_encoded_again_when_it_was_resized(module, code, bits) -> None:
    """The elements are float32, bfloat16, float8_e4m3fn and bool."""
    array, out = image(), words()
    foreign = exchange_native.Tensor(address(array), (4, 32), owner=array, code=code, bits=bits)
    map = bascule.tensor_map(foreign, (2, 16))
    for shape in ((4, 32), (4, 32), (2, 64), (8, 16), (4, 32)):
        foreign.__init__(address(array), shape, owner=array, code=code, bits=bits)  # type: ignore[misc]
        module.value[1, 16](map, out)
        assert out.copy_to_host().tolist() == encoded(map)
        assert map.shape == shape
    foreign.__init__(address(array), (4, 32), owner=array, code=1, bits=bits)  # type: ignore[misc]
    with pytest.raises(bascule.ArgumentError, match=r"the tensor map was made of .*uint.* now: make it again"):
        module.value[1, 16](map, out)
