"""Operations on elements on the device: astype, copy, fill, assignment and transfers, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import ForeignArray, traced

import bascule

NUMBERS = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
STRUCT = np.dtype([("a", "u1"), ("b", "<f4"), ("c", "<i8", 3)])  # 29 bytes, packed


def random_values(dtype: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Values of the whole range: every bit pattern for integers, all magnitudes and special values for floats."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.integers(0, 2, count).astype("b1")
    if kind.kind in "iu":
        return np.frombuffer(rng.bytes(count * kind.itemsize), kind).copy()
    if kind.kind == "c":
        part = f"f{kind.itemsize // 2}"
        return np.stack([random_values(part, count, rng), random_values(part, count, rng)], 1).view(dtype)[:, 0]
    info = np.finfo(kind)
    span = np.log2(float(info.max))
    values = (rng.choice([-1.0, 1.0], count) * np.exp2(rng.uniform(-span - 3, span - 0.01, count))).astype(dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.tiny, 1.5, -2.5], dtype)
    values[: special.size] = special
    return values


def in_range(source: str, target: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Floats whose integer part the target can represent: for others C defines no result, and NumPy warns."""
    info = np.iinfo(target)
    limit = min(float(info.max), float(np.finfo(source).max)) * 0.49
    low = 0.0 if info.min == 0 else -limit
    values = rng.uniform(low, limit, count)
    values[::2] = rng.uniform(max(low, -100), 100, values[::2].size)
    values[0] = -0.0
    return values.astype(source)


@pytest.mark.parametrize("source", NUMBERS)
def test_astype_agrees_with_numpy(source, rng):
    for target in NUMBERS:
        kinds = np.dtype(source).kind, np.dtype(target).kind
        if kinds[0] == "c" and kinds[1] not in "cb":
            continue
        floats_to_integers = kinds[0] == "f" and kinds[1] in "iu"
        values = (in_range if floats_to_integers else lambda s, _t, n, r: random_values(s, n, r))(
            source, target, 300, rng
        )
        with np.errstate(all="ignore"):
            expected = values.astype(target)
        result = bascule.to_device(values).astype(target)
        assert result.dtype == target
        np.testing.assert_array_equal(result.copy_to_host(), expected, err_msg=f"{source} to {target}")


def test_astype_takes_any_strides_and_alignment(rng):
    host = rng.integers(-1000, 1000, (7, 8, 9)).astype("f4")
    x = bascule.to_device(host)
    for view, expected in [
        (x[::-2, ::3], host[::-2, ::3]),
        (x.T, host.T),
        (x[:, None, 2, ::-1], host[:, None, 2, ::-1]),
        (x[2:2], host[2:2]),
        (x[1, 2, 3], host[1, 2, 3]),
    ]:
        np.testing.assert_array_equal(view.astype("i8").copy_to_host(), expected.astype("i8"))
    assert x.T.astype("i8").f_contiguous
    bytes_ = np.zeros(1 + 4 * 10, "u1")
    bytes_[1:] = host.ravel()[:10].view("u1")
    base = bascule.to_device(bytes_)
    odd = ForeignArray(base, shape=(10,), typestr="<f4", data=(base.__cuda_array_interface__["data"][0] + 1, False))
    np.testing.assert_array_equal(
        bascule.as_cuda_array(odd).astype("i2").copy_to_host(), host.ravel()[:10].astype("i2")
    )


def test_astype_of_the_same_dtype_is_a_copy():
    x = bascule.to_device(np.arange(4))
    y = x.astype(x.dtype)
    y[:] = 0
    np.testing.assert_array_equal(x.copy_to_host(), np.arange(4))


def test_what_astype_does_not_convert_is_named():
    with pytest.raises(TypeError, match=r"complex128 to float64 would drop the imaginary parts.*view\(\"f8\"\)"):
        bascule.to_device(np.zeros(2, "c16")).astype("f8")
    with pytest.raises(TypeError, match=r"copy_to_host\(\)\.astype"):
        bascule.to_device(np.zeros(2, STRUCT)).astype("f8")
    with pytest.raises(TypeError, match="V5"):
        bascule.to_device(np.zeros(2, "f4")).astype("V5")


def test_the_hint_for_real_parts_works(rng):
    host = rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3))
    x = bascule.to_device(host)
    np.testing.assert_array_equal(x.reshape(*x.shape, 1).view("f8")[..., 0].copy_to_host(), host.real)


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c16", "V3", STRUCT], ids=str)
def test_copies_of_views_have_their_values_and_the_order_asked_for(dtype, rng):
    size = np.dtype(dtype).itemsize
    host = np.frombuffer(rng.bytes(5 * 6 * 7 * size), dtype).reshape(5, 6, 7)
    x = bascule.to_device(host)
    for view, expected in [
        (x[::-1, 1::2, ::3], host[::-1, 1::2, ::3]),
        (x.transpose(1, 2, 0), host.transpose(1, 2, 0)),
    ]:
        for order in "CFK":
            copied = view.copy(order)
            assert copied.f_contiguous if order == "F" else copied.c_contiguous
            assert copied.copy_to_host().tobytes() == expected.tobytes()
    assert x.T.copy("K").strides == x.T.strides
    with pytest.raises(ValueError, match="'C', 'F' or 'K'"):
        x.copy("A")


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("b1", True), ("u1", 7), ("i2", -3), ("f2", 1.5), ("f4", -0.1), ("i8", -5), ("f8", np.pi), ("c16", 1 - 2j)],
)
def test_fill_sets_what_the_view_has_and_nothing_else(dtype, value, rng):
    host = random_values(dtype, 60, rng).reshape(6, 10)
    x = bascule.to_device(host)
    for index in [(slice(None),), (slice(1, 3),), (slice(None), slice(None, None, -3)), (2, 3), (slice(0, 0),)]:
        host[index] = value
        x[index].fill(value)
        np.testing.assert_array_equal(x.copy_to_host(), host)
        value = value if dtype == "b1" else value * 2


def test_fill_of_structures_sets_every_field(rng):
    for dtype in [STRUCT, np.dtype([("x", "<f4", 3)])]:
        host = np.frombuffer(rng.bytes(20 * dtype.itemsize), dtype).reshape(4, 5).copy()
        element = np.frombuffer(rng.bytes(dtype.itemsize), dtype)[0]
        x = bascule.to_device(host)
        x[::2, 1:4].fill(element)
        host[::2, 1:4] = element
        assert x.copy_to_host().tobytes() == host.tobytes()


def test_fill_converts_as_numpy_does():
    x = bascule.device_array(3, "u1")
    with pytest.raises(OverflowError):
        x.fill(300)
    with pytest.raises(TypeError):
        x.fill(1j)
    with pytest.raises(TypeError):
        x.fill(2.9)
    x.fill(True)
    assert (x.copy_to_host() == 1).all()


def test_repeated_bytes_are_filled_by_the_driver():
    for dtype, value, name in [("u1", 1, "D8"), ("f2", 1.5, "D16"), ("f4", 1.5, "D32"), ("f8", 0.0, "D8")]:
        x = bascule.device_array(64, dtype)
        with traced() as operations:
            x.fill(value)
        assert [o.kind for o in operations] == ["fill"]
        assert name in operations[0].name
    x = bascule.device_array(64, "f8")
    x.fill(0.1)
    with traced() as operations:
        x.fill(0.1)
    assert [o.kind for o in operations] == ["launch"]


def test_assignment_takes_numbers_host_and_device_arrays(rng):
    host = rng.integers(0, 100, (4, 6)).astype("i4")
    x = bascule.to_device(host)
    values = rng.integers(0, 100, (4, 2)).astype("i4")
    x[:, ::3] = values
    host[:, ::3] = values
    x[1] = -1
    host[1] = -1
    x[2, 3] = np.int64(9)
    host[2, 3] = 9
    x[3] = bascule.to_device(host[0])
    host[3] = host[0]
    x[0] = ForeignArray(bascule.to_device(host[2]))
    host[0] = host[2]
    x[1, :3] = [1, 2, 3]
    host[1, :3] = [1, 2, 3]
    np.testing.assert_array_equal(x.copy_to_host(), host)


@pytest.mark.parametrize(("to", "source"), [(slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))])
def test_assignment_between_overlapping_views_reads_before_it_writes(to, source):
    host = np.arange(10_000)
    x = bascule.to_device(host)
    x[to] = x[source]
    host[to] = host[source].copy()
    x[:] = x[::-1]
    np.testing.assert_array_equal(x.copy_to_host(), host[::-1])


def test_assignment_of_something_else_says_what_to_do():
    x = bascule.to_device(np.zeros((2, 3), "f4"))
    with pytest.raises(TypeError, match=r"complex128 values to float32 elements.*astype"):
        x[:] = bascule.to_device(np.zeros((2, 3), "c16"))
    with pytest.raises(ValueError, match=r"numpy\.broadcast_to"):
        x.copy_from_host(np.zeros(3, "f4"))
    readonly = bascule.as_cuda_array(ForeignArray(x, data=(x.__cuda_array_interface__["data"][0], True)))
    for write in (lambda: readonly.fill(0), lambda: readonly.__setitem__(0, 1), lambda: readonly.copy_from_host(x)):
        with pytest.raises(ValueError, match=r"read-only.*x\.copy\(\)"):
            write()


def test_host_values_go_to_and_come_from_any_strides(rng):
    host = rng.standard_normal((6, 8))
    x = bascule.to_device(host)
    values = rng.standard_normal((8, 3))
    x.T[:, ::-2].copy_from_host(values)
    host.T[:, ::-2] = values
    np.testing.assert_array_equal(x.copy_to_host(), host)
    gaps = np.full((6, 16), np.nan)
    assert x.copy_to_host(out=gaps[:, ::2]) is not None
    np.testing.assert_array_equal(gaps[:, ::2], host)
    assert np.isnan(gaps[:, 1::2]).all()
    fortran = np.empty((6, 8), order="F")
    x.copy_to_host(out=fortran)
    np.testing.assert_array_equal(fortran, host)


def test_out_that_does_not_fit_is_named():
    x = bascule.device_array((2, 3), "f4")
    for out, message in [
        (np.empty((3, 2), "f4"), r"shape \(2, 3\) and dtype float32, got shape \(3, 2\)"),
        (np.empty((2, 3)), "got shape .* and dtype float64"),
        (np.broadcast_to(np.float32(0), (2, 3)), "read-only"),
    ]:
        with pytest.raises(ValueError, match=message):
            x.copy_to_host(out=out)
    with pytest.raises(TypeError, match="pinned or managed"):
        x.copy_to_host(out=[0] * 6)


def test_elements_are_ordered_with_both_streams():
    p, q, c = (bascule.stream() for _ in range(3))
    x = bascule.to_device(np.arange(64.0), stream=p)
    y = bascule.to_device(np.zeros(64), stream=q)
    x.astype("f4")  # compiles
    with traced() as operations:
        z = x.astype("f4", stream=c)
    assert z.stream.handle == c.handle
    kinds = [(o.kind, o.stream) for o in operations if o.kind in ("record", "wait", "launch")]
    assert kinds == [
        ("record", p.handle), ("wait", c.handle), ("launch", c.handle), ("record", c.handle), ("wait", p.handle)
    ]  # fmt: skip
    with q, traced() as operations:
        y[:] = x
    kinds = [(o.kind, o.stream) for o in operations]
    assert kinds == [
        ("record", p.handle), ("wait", q.handle), ("copy", q.handle), ("record", q.handle), ("wait", p.handle)
    ]  # fmt: skip


def test_arrays_are_kept_until_the_device_is_done_with_them(rng):
    host = rng.standard_normal((300, 300))
    result = bascule.to_device(host)[::-1].astype("f4")[:, ::-1].copy()
    np.testing.assert_array_equal(result.copy_to_host(), host[::-1, ::-1].astype("f4"))
