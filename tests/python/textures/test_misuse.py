"""Kernel errors with textures and surfaces are faults whose report names them."""

from __future__ import annotations

import numpy as np
import pytest

import bascule

pytestmark = pytest.mark.skipif(
    not bascule.current_device().emulated, reason="only the emulated device reports what a GPU leaves undefined"
)

SOURCE = """
__global__ void read2(cudaTextureObject_t t, float* out) { out[0] = tex2D<float>(t, 0.5f, 0.5f); }
__global__ void read3(cudaTextureObject_t t, float* out) { out[0] = tex3D<float>(t, 0.5f, 0.5f, 0.5f); }
__global__ void read1(cudaTextureObject_t t, float* out) { out[0] = tex1D<float>(t, 0.5f); }
__global__ void read_int(cudaTextureObject_t t, int* out) { out[0] = tex2D<int>(t, 0.5f, 0.5f); }
__global__ void gather(cudaTextureObject_t t, float* out) { out[0] = tex2Dgather<float4>(t, 1, 1).x; }
__global__ void by_number(unsigned long long t, float* out) { out[0] = tex2D<float>(t, 0.5f, 0.5f); }
__global__ void write(cudaSurfaceObject_t s, int x, int y) { surf2Dwrite(1.0f, s, x, y); }
__global__ void write3(cudaSurfaceObject_t s) { surf3Dwrite(1.0f, s, 0, 0, 0); }
__global__ void write_number(unsigned long long s) { surf2Dwrite(1.0f, s, 0, 0); }
"""


@pytest.fixture(scope="module")
def module() -> bascule.Module:
    return bascule.compile(SOURCE)


@pytest.fixture(autouse=True)
def reset():
    yield
    bascule.emulated.reset()


def faults(match: str, kernel, *arguments) -> str:
    kernel[1, 1](*arguments)  # does not run before something waits
    with pytest.raises(bascule.CudaError, match=match) as error:
        bascule.synchronize()
    assert error.value.code == 700
    return str(error.value)


def test_another_geometry(module) -> None:
    out = bascule.device_array(1, "f4")
    image = bascule.zeros((4, 32), "f4")
    text = faults(
        r"reads the texture by tex\.3d, and it is of two dimensions", module.read3, bascule.texture(image), out
    )
    assert "kernel 'read3' misused a texture or surface" in text
    assert "tex3D<float>" in text


def test_linear_memory_is_not_sampled(module) -> None:
    faults(
        "read at integers: tex1Dfetch",
        module.read1,
        bascule.texture(bascule.zeros(64, "f4")),
        bascule.device_array(1, "f4"),
    )


def test_numbers_and_integers_are_not_mixed(module) -> None:
    out = bascule.device_array(1, "f4")
    faults(
        "reads floating-point numbers, and the texture gives integers",
        module.read2,
        bascule.texture(bascule.zeros((4, 32), "u1")),
        out,
    )
    bascule.emulated.reset()
    faults(
        "reads integers, and the texture gives floating-point",
        module.read_int,
        bascule.texture(bascule.zeros((4, 32), "f4")),
        bascule.device_array(1, "i4"),
    )


def test_gathers_need_an_array_that_was_made_for_them(module) -> None:
    faults(
        "tex2Dgather needs a CUDA array",
        module.gather,
        bascule.texture(bascule.cuda_array(np.zeros((4, 4), "f4"))),
        bascule.device_array(1, "f4"),
    )


def test_a_number_is_not_a_texture(module) -> None:
    faults("0x10 is not a texture object", module.by_number, 16, bascule.device_array(1, "f4"))


def test_a_texture_that_was_destroyed(module) -> None:
    texture = bascule.texture(bascule.zeros((4, 32), "f4"))
    handle = texture.handle
    del texture
    faults("was destroyed before the kernel had finished", module.by_number, handle, bascule.device_array(1, "f4"))


def test_a_surface_is_not_a_texture(module) -> None:
    surface = bascule.surface(bascule.CudaArray((4, 4), surface=True))
    faults("uses a surface object as a texture", module.by_number, surface.handle, bascule.device_array(1, "f4"))
    bascule.emulated.reset()
    texture = bascule.texture(bascule.zeros((4, 32), "f4"))
    faults("uses a texture object as a surface", module.write_number, texture.handle)


def test_a_texture_whose_memory_is_freed(module) -> None:
    address = bascule.zeros((4, 32), "f4")
    described = {**address.__cuda_array_interface__, "stream": None}
    texture = bascule.texture(bascule.from_cuda_array_interface(described))  # keeps nothing alive
    bascule.synchronize()
    handle = texture.handle
    del address, described
    bascule.synchronize()
    out = bascule.device_array(1, "f4")
    text = faults("kernel 'by_number'", module.by_number, handle, out)
    assert "freed" in text


def test_outside_of_a_surface(module) -> None:
    surface = bascule.surface(bascule.CudaArray((4, 8), surface=True))
    faults(r"outside of the surface, which has 32 bytes x 4 rows", module.write, surface, 32, 0)
    bascule.emulated.reset()
    surface = bascule.surface(bascule.CudaArray((4, 8), surface=True))
    faults("outside of the surface", module.write, surface, 0, -1)
    bascule.emulated.reset()
    surface = bascule.surface(bascule.CudaArray((4, 8), surface=True))
    faults("needs an x that is a multiple", module.write, surface, 2, 0)
    bascule.emulated.reset()
    surface = bascule.surface(bascule.CudaArray((4, 8), surface=True))
    faults(r"by \.3d, and it is of two dimensions", module.write3, surface)
