"""Textures and surfaces as arguments: accepted parameters, ordering, and the objects that they keep alive."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from conftest import ForeignArray

import bascule

SOURCE = """
__global__ void fill(float* p, float value) { p[blockIdx.x * blockDim.x + threadIdx.x] = value; }
__global__ void fill_surface(cudaSurfaceObject_t s, float value) { surf2Dwrite(value, s, 4 * threadIdx.x, blockIdx.x); }
__global__ void read(cudaTextureObject_t t, float* out) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = tex2D<float>(t, threadIdx.x + 0.5f, blockIdx.x + 0.5f);
}
__global__ void read_integer(unsigned long long t, float* out) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = tex2D<float>(t, threadIdx.x + 0.5f, blockIdx.x + 0.5f);
}
__global__ void add_one(unsigned long long n, unsigned long long* out) { out[0] = n + 1; }
template <typename T>
__global__ void read_as(cudaTextureObject_t t, T* out) { out[threadIdx.x] = tex2D<T>(t, threadIdx.x + 0.5f, 0.5f); }
template <typename Texture>
__global__ void read_any(Texture t, float* out) { out[threadIdx.x] = tex2D<float>(t, threadIdx.x + 0.5f, 0.5f); }
"""


@pytest.fixture(scope="module")
def module() -> bascule.Module:
    return bascule.compile(SOURCE)


def image(value: float = 1.0, stream: bascule.Stream | None = None) -> bascule.DeviceArray:
    return bascule.to_device(np.full((4, 32), value, "f4"), stream=stream)


def zeros(stream: bascule.Stream | None = None) -> bascule.DeviceArray:
    return bascule.to_device(np.zeros((4, 32), "f4"), stream=stream)


def test_a_texture_is_what_a_parameter_that_spells_one_takes(module) -> None:
    out = zeros()
    module.read[4, 32](bascule.texture(image(3)), out)
    assert (out.copy_to_host() == 3).all()
    assert module.read.signature == "void read(cudaTextureObject_t t, float* out)"


def test_a_spelling_counts_as_a_whole_word_wherever_it_is() -> None:
    aliases = "template <class T> using my_cudaTextureObject_t = T;"
    parameters = "my_cudaTextureObject_t<cudaTextureObject_t> t, my_cudaTextureObject_t<long> n"
    kernel = bascule.compile(f"{aliases}\n__global__ void k({parameters}) {{}}").k
    assert kernel.signature == "void k(cudaTextureObject_t t, long n)"
    kernel[1, 1](bascule.texture(image()), 3)


@pytest.mark.parametrize("given", [3, 2.5, None, (1, 2), np.uint64(7), np.zeros(3, "u8"), b"12345678", "t"])
def test_anything_else_is_refused_by_name(module, given) -> None:
    with pytest.raises(bascule.ArgumentError, match="argument 1 't'") as error:
        module.read[4, 32](given, zeros())
    assert "cudaTextureObject_t" in str(error.value)
    assert "bascule.texture(array)" in str(error.value)


def test_an_array_and_a_raw_pointer_are_refused_too(module) -> None:
    for given in (image(), bascule.raw_pointer(16), bascule.surface(bascule.CudaArray((2, 2), surface=True))):
        with pytest.raises(bascule.ArgumentTypeError, match=r"Pass a texture: bascule\.texture\(array\)"):
            module.read[4, 32](given, zeros())
    with pytest.raises(bascule.ArgumentTypeError, match=r"Pass a surface: bascule\.surface\(array\)"):
        module.fill_surface[4, 32](bascule.texture(image()), 1)


def test_a_texture_is_no_array_and_no_number(module) -> None:
    with pytest.raises(bascule.ArgumentTypeError, match="A kernel takes it as `cudaTextureObject_t`"):
        module.fill[4, 32](bascule.texture(image()), 1)
    with pytest.raises(bascule.ArgumentTypeError, match="A kernel takes it as `cudaTextureObject_t`"):
        module.fill[4, 32](image(), bascule.texture(image()))


def test_a_plain_integer_takes_integers_and_textures(module) -> None:
    out, number = zeros(), bascule.device_array(1, "u8")
    module.read_integer[4, 32](bascule.texture(image(5)), out)
    assert (out.copy_to_host() == 5).all()
    module.add_one[1, 1](2**63, number)
    assert number.copy_to_host()[0] == 2**63 + 1


def test_templates_are_chosen_beside_a_texture_and_by_one(module) -> None:
    texture, out = bascule.texture(image(2)), bascule.device_array(32, "f4")
    module.read_as[1, 32](texture, out)
    assert (out.copy_to_host() == 2).all()
    module.read_any[1, 32](bascule.texture(image(4)), out)
    assert (out.copy_to_host() == 4).all()


def test_the_launch_waits_for_the_stream_of_the_array_and_is_waited_for(module) -> None:
    """The search for races fails this test if a wait is missing."""
    produced, launched, written = bascule.stream(), bascule.stream(), bascule.stream()
    for source in (image(stream=produced), ForeignArray(image(stream=produced))):
        array = source if isinstance(source, bascule.DeviceArray) else source.array
        bascule.synchronize()
        texture = bascule.texture(source)
        for value in (2, 3, 4):
            module.fill[4, 32, produced](array, value)
            out = zeros(written)
            module.read[4, 32, launched](texture, out)
            module.fill[4, 32, produced](array, -1)
            assert (out.copy_to_host() == value).all()


def test_a_cuda_array_is_ordered_by_its_stream(module) -> None:
    produced, launched = bascule.stream(), bascule.stream()
    array = bascule.CudaArray((4, 32), surface=True, stream=produced)
    surface, texture, out = bascule.surface(array), bascule.texture(array), zeros()
    for value in (2, 3):
        module.fill_surface[4, 32, launched](surface, value)
        module.read[4, 32, produced](texture, out)
        array.copy_from(np.full((4, 32), -1, "f4"))
        assert (out.copy_to_host() == value).all()


def test_without_order_the_race_is_found(module) -> None:
    if not bascule.current_device().emulated:
        pytest.skip("only the emulated device looks for races")
    produced, launched = bascule.stream(), bascule.stream()
    array = image(stream=produced)
    texture, out = bascule.texture(array), zeros(launched)
    bascule.synchronize()
    module.fill[4, 32, produced](array, 2)
    module.read.launch(4, 32, (texture, out), stream=launched, sync=False)
    with pytest.raises(bascule.RaceError, match="read"):
        bascule.synchronize()


def test_explain_names_the_array_and_its_stream(module) -> None:
    produced, launched = bascule.stream(), bascule.stream()
    array, out = image(stream=produced), zeros(launched)
    text = str(module.read[4, 32, launched].explain(bascule.texture(array), out))
    assert "the texture of a float32 array of shape (4, 32)" in text
    assert "wait" in text.split("'t'")[1].split("'out'")[0]
    volume = bascule.cuda_array(np.zeros((4, 32), "f4"), stream=produced)
    assert "a CUDA array" in str(module.read[4, 32, launched].explain(bascule.texture(volume), out))


def test_bound_launches_prepared_kernels_and_rules_take_textures(module) -> None:
    texture, out = bascule.texture(image(6)), zeros()
    bound = module.read[4, 32].bind(texture, out)
    del texture
    gc.collect()
    bound()
    assert (out.copy_to_host() == 6).all()
    module.read.prepare(bascule.texture(image()), out)

    @bascule.kernel(SOURCE)
    def read(t, out):
        return bascule.LaunchConfig(4, 32)

    read(bascule.texture(image(7)), out)
    assert (out.copy_to_host() == 7).all()


def test_a_graph_keeps_the_texture_and_its_array(module) -> None:
    array, out = image(8), zeros()
    texture = bascule.texture(array)
    module.read.prepare(texture, out)
    with bascule.Graph() as graph:
        module.read[4, 32](texture, out)
    del texture, array
    gc.collect()
    image(9)  # would reuse the array's memory if that were free
    graph.launch()
    bascule.synchronize()
    assert (out.copy_to_host() == 8).all()


def test_a_texture_keeps_its_array_and_a_launch_its_texture(module) -> None:
    source = ForeignArray(image(3))
    array, out, stream = weakref.ref(source), zeros(), bascule.stream()
    texture = bascule.texture(source)
    del source
    gc.collect()
    assert array() is not None
    module.read[4, 32, stream](texture, out)  # has not run: the schedule is lazy
    del texture
    gc.collect()
    assert (out.copy_to_host() == 3).all()
    bascule.synchronize()
    gc.collect()
    assert array() is None


def test_an_array_that_has_moved_is_refused(module) -> None:
    source = ForeignArray(image())
    texture = bascule.texture(source)
    source.array = image()
    with pytest.raises(bascule.ArgumentError, match="make it again"):
        module.read[4, 32](texture, zeros())


def test_texts_with_texture_references_are_told_of_textures() -> None:
    with pytest.raises(bascule.CompileError, match=r"pass bascule\.texture\(array\)"):
        bascule.compile("texture<float, 2> t;\n__global__ void k(float* p) { p[0] = tex2D(t, 0, 0); }").k.prepare()


def test_the_names_of_the_driver_are_known_too() -> None:
    module = bascule.compile(
        "typedef unsigned long long CUtexObject;\n"
        "__global__ void read(CUtexObject t, float* out) { out[threadIdx.x] = tex2D<float>(t, threadIdx.x, 0); }"
    )
    with pytest.raises(bascule.ArgumentTypeError, match=r"bascule\.texture\(array\)"):
        module.read[1, 1](3, zeros())
    out = zeros()
    module.read[1, 32](bascule.texture(image(2)), out)
    assert (out.copy_to_host()[0] == 2).all()
