"""The sources of textures, surfaces and CUDA arrays, and refusals with a reason."""

from __future__ import annotations

import numpy as np
import pytest

import bascule


def refused(match: str, array, **options) -> None:
    with pytest.raises(bascule.ArgumentError, match=match):
        bascule.texture(array, **options)


def test_what_no_texture_has_is_refused() -> None:
    refused("float64.*channels=2", bascule.zeros((4, 32), "f8"))
    refused("complex64", bascule.zeros((4, 32), "c8"))
    refused("1, 2 or 4 channels, got 3", bascule.zeros((4, 32, 3), "f4"), channels=3)
    refused("the last axis of the array has 4 elements", bascule.zeros((4, 32), "f4"), channels=4)
    refused(r"channels=4", bascule.zeros((8, 8, 4), "f4"))
    refused("at least one element", bascule.zeros((0, 32), "f4"))
    refused("bascule.cuda_array\\(x\\) copies a host array", np.zeros((4, 32), "f4"))
    refused("an object of type int", 3)


def test_memory_that_textures_cannot_read_is_refused_with_the_copy_that_helps() -> None:
    x = bascule.zeros((8, 256), "f4")
    refused("multiple of 512.*bascule.cuda_array", x[:, 1:])
    refused("rows of the array are 40 bytes apart.*multiple of 32", bascule.zeros((8, 10), "f4"))
    refused("elements follow each other", x[:, ::2])
    refused("elements follow each other", x.T)
    refused("in one piece", bascule.zeros(64, "f4")[::2])
    bascule.texture(x[:, :10])
    bascule.texture(x[0])
    bascule.texture(bascule.zeros((1, 10), "f4"))  # with one row the pitch does not matter


def test_options_that_a_driver_would_ignore_are_refused() -> None:
    x = bascule.zeros((4, 32), "f4")
    refused("need normalised coordinates: pass normalized=True", x, address="wrap")
    refused("need normalised coordinates", x, address=("clamp", "mirror"))
    refused("linear filtering.*convert them to float32", bascule.zeros((4, 32), "i4"), filter="linear")
    refused('linear filtering.*pass read="normalized"', bascule.zeros((4, 32), "u1"), filter="linear")
    refused("8 and 16 bits.*float32", x, read="normalized")
    refused("sRGB is for uint8", x, srgb=True)
    refused("tex1Dfetch", x[0], filter="linear")
    refused("tex1Dfetch", x[0], normalized=True)


def test_options_are_named_in_errors() -> None:
    x = bascule.zeros((4, 32), "f4")
    refused("'address' is one of 'wrap', 'clamp', 'mirror', 'border', got 'repeat'", x, address="repeat")
    refused("'filter' is one of 'point', 'linear', got 3", x, filter=3)
    refused("'read' is one of 'element', 'normalized'", x, read="float")
    refused("a mode for each of x, y and z, got 4", x, address=("clamp",) * 4)
    refused("at most 4 numbers", x, address="border", border=(0,) * 5)
    refused("the CUDA array has 1 channels, got 4", bascule.CudaArray((4, 4)), channels=4)


def test_surfaces_are_of_cuda_arrays_that_were_made_for_them() -> None:
    with pytest.raises(bascule.ArgumentError, match=r"bascule\.cuda_array\(x, surface=True\)"):
        bascule.surface(bascule.zeros((4, 32), "f4"))
    with pytest.raises(bascule.ArgumentError, match="pass surface=True"):
        bascule.surface(bascule.CudaArray((4, 32)))


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((7,), {}),
        ((5, 7), {}),
        ((3, 5, 7), {}),
        ((5, 7, 4), {"channels": 4}),
        ((3, 5, 7, 2), {"channels": 2}),
        ((3, 7), {"layered": True}),
        ((3, 5, 7), {"layered": True}),
        ((6, 5, 5), {"cube": True}),
        ((12, 5, 5, 4), {"cube": True, "layered": True, "channels": 4}),
        ((5, 7), {"gather": True, "surface": True}),
    ],
)
@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "f4"])
def test_cuda_arrays_copy_arrays_of_host_and_device(shape, options, dtype) -> None:
    values = np.random.default_rng(1).integers(0, 100, shape).astype(dtype)
    stream, other = bascule.stream(), bascule.stream()
    for source in (values, bascule.to_device(values, stream=other)):
        array = bascule.cuda_array(source, stream=stream, **options)
        assert array.shape == shape
        assert array.dtype == dtype
        assert array.nbytes == values.nbytes
        assert array.stream == stream
        np.testing.assert_array_equal(array.copy_to_host(), values)
    array.copy_from(values[::-1], stream=other)
    np.testing.assert_array_equal(array.copy_to_host(), values[::-1])
    array.copy_from(bascule.to_device(np.ascontiguousarray(values[..., ::-1])))
    np.testing.assert_array_equal(array.copy_to_host(), values[..., ::-1])


def test_large_host_arrays_may_change_after_the_copy() -> None:
    values = np.random.default_rng(2).random((1000, 1000), "f4")
    kept = values.copy()
    array = bascule.cuda_array(values)
    values[:] = 0
    np.testing.assert_array_equal(array.copy_to_host(), kept)


def test_what_no_cuda_array_is_is_refused() -> None:
    def refused(match: str, *arguments, **options) -> None:
        with pytest.raises(bascule.ArgumentError, match=match):
            bascule.CudaArray(*arguments, **options)

    refused("a CUDA array has 1 to 3 axes, got 4", (1, 2, 3, 4))
    refused("axes and one of 4 channels, got 4", (1, 2, 3, 4, 4), channels=4)
    refused("no empty axis", (0, 4))
    refused("a cube has 6 faces", (5, 4, 4), cube=True)
    refused("a cube has 6 faces, which are squares", (6, 4, 5), cube=True)
    refused("6 in each layer", (8, 4, 4), cube=True, layered=True)
    refused("two dimensions can be made for tex2Dgather", (4,), gather=True)
    refused("float64", (4, 4), "f8")
    refused("at most [0-9]+ x [0-9]+ x [0-9]+ texels", (1, 1, 10**6))
    refused("at most [0-9]+ texels", 10**7)
    with pytest.raises(bascule.ArgumentError, match="has shape \\(4, 4\\) and dtype float32, got shape \\(4,\\)"):
        bascule.CudaArray((4, 4)).copy_from(np.zeros(4, "f4"))
    with pytest.raises(bascule.ArgumentError, match="C-contiguous"):
        bascule.CudaArray((4, 4)).copy_from(bascule.zeros((4, 8), "f4")[:, ::2])


def test_what_is_shown() -> None:
    array = bascule.CudaArray((6, 4, 4, 2), "f2", channels=2, cube=True)
    assert repr(array).startswith("<bascule.CudaArray shape=(6, 4, 4, 2) dtype=float16 channels=2 cube on ")
    assert "of a CUDA array of shape (6, 4, 4, 2) and dtype float16" in repr(bascule.texture(array))
    texture = bascule.texture(x := bascule.zeros((4, 32), "f4"))
    assert "<bascule.Texture of a float32 array of shape (4, 32), on " in repr(texture)
    assert texture.array is x
    assert texture.handle > 0
    assert texture.device == bascule.current_device()
