"""Launches that use other libraries' exchange tables; exchange_native.c has a type that offers one."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import ClassVar

import numpy as np
import pytest
from conftest import traced

import bascule
from dlpack.capsules import CPU, Producer
from dlpack.exchanged import HOST, Owner, address, counted, exchange_native, out, tensor


@pytest.fixture
def array() -> bascule.DeviceArray:
    return bascule.to_device(HOST)


@pytest.fixture(autouse=True)
def default_work_stream():
    exchange_native.set_work_stream(0)


def test_a_const_parameter_borrows_and_asks_for_the_work_stream(module, array):
    foreign, result = tensor(array), out()
    assert counted(lambda: module.copy[1, 8](foreign, result)) == {
        "borrowed": 1, "made": 0, "deleted": 0, "streams": 1,
    }  # fmt: skip
    np.testing.assert_array_equal(result.copy_to_host(), HOST)


def test_the_work_stream_orders_the_launch(module, array):
    stream = bascule.stream()
    exchange_native.set_work_stream(stream.handle)
    foreign, result = tensor(array), out()
    module.copy[1, 8](foreign, result)
    with traced() as operations:
        module.copy[1, 8](foreign, result)
    assert [(o.kind, o.stream) for o in operations if o.kind in ("record", "wait", "launch")] == [
        ("record", stream.handle), ("wait", 1), ("launch", 1), ("record", 1), ("wait", stream.handle),
    ]  # fmt: skip
    both = tensor(array), tensor(result)
    with traced() as operations:
        module.copy[1, 8](*both)
    assert [(o.kind, o.stream) for o in operations if o.kind in ("record", "wait", "launch")] == [
        ("launch", stream.handle)
    ]


def test_views_get_the_strides(module):
    host = np.arange(12, dtype="f4").reshape(3, 4)
    array = bascule.to_device(host)
    foreign = exchange_native.Tensor(address(array), (4, 3), strides=(1, 4), owner=array)
    result = bascule.to_device(np.full(4, np.nan, "f4"))
    module.sum_rows[1, 4](foreign, result)
    np.testing.assert_array_equal(result.copy_to_host(), host.sum(axis=0))


def test_templates_are_chosen_by_the_tensors_dtype(module):
    host = np.arange(8, dtype="i8")
    array, result = bascule.to_device(host), bascule.to_device(np.zeros(8, "i8"))
    module.twice[1, 8](exchange_native.Tensor(address(array), (8,), code=0, bits=64, owner=array), result)
    np.testing.assert_array_equal(result.copy_to_host(), 2 * host)


class WithInterface(exchange_native.Tensor):
    """Offers the table and the interface, as torch does. Counts reads of the interface, to which it adds `changes`."""

    reads = 0
    changes: ClassVar[dict[str, object]] = {}

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        type(self).reads += 1
        return {"shape": (8,), "typestr": "<f4", "data": (self.address, False), "version": 2, **self.changes}


def with_interface(array: bascule.DeviceArray, **options: object) -> WithInterface:
    changes = options.pop("changes", {})
    foreign = tensor(array, WithInterface, **options)
    foreign.address = address(array)
    foreign.changes = changes
    WithInterface.reads = 0
    return foreign


def test_row_11_the_table_comes_before_the_interface(module, array):
    foreign = with_interface(array)
    assert counted(lambda: module.copy[1, 8](foreign, out()))["borrowed"] == 1
    assert foreign.reads == 0


def test_row_11_the_interface_comes_before_dlpack(module, array):
    class Both(Producer):
        __cuda_array_interface__ = property(lambda self: self.array.__cuda_array_interface__)

    both, result = Both(array), out()
    module.copy[1, 8](both, result)
    assert both.asked == []
    np.testing.assert_array_equal(result.copy_to_host(), HOST)


def test_where_the_kernel_writes_the_interface_says_whether_it_may(module, array):
    foreign = with_interface(out())
    assert counted(lambda: module.copy[1, 8](array, foreign))["borrowed"] == 0
    assert foreign.reads == 1
    frozen = with_interface(out(), changes={"data": (address(array), True)})
    with pytest.raises(ValueError, match="argument 2 'out'.*read-only"):
        module.copy[1, 8](array, frozen)


def test_an_interface_that_cannot_name_a_stream_is_ordered_by_the_table(module, array):
    stream = bascule.stream()
    exchange_native.set_work_stream(stream.handle)
    old, new = with_interface(out()), with_interface(out(), changes={"version": 3})
    for foreign, expected in ((old, [("record", stream.handle), ("wait", stream.handle)]), (new, [])):
        module.copy[1, 8](array, foreign)
        with traced() as operations:
            module.copy[1, 8](array, foreign)
        touching = [(o.kind, o.stream) for o in operations if o.kind in ("record", "wait")]
        assert [o for o in touching if o[1] == stream.handle] == expected


def test_where_the_kernel_writes_and_there_is_no_interface_the_flags_say_whether_it_may(module, array):
    result = out()
    writable = tensor(result)
    assert counted(lambda: module.copy[1, 8](array, writable)) == {
        "borrowed": 0, "made": 1, "deleted": 0, "streams": 1,
    }  # fmt: skip
    np.testing.assert_array_equal(result.copy_to_host(), HOST)  # waits, so the launch releases its owners
    bascule.synchronize()
    count = exchange_native.count()
    assert count["made"] == count["deleted"]
    frozen = tensor(result, readonly=True)

    def refused():
        with pytest.raises(ValueError, match="argument 2 'out'.*read-only"):
            module.copy[1, 8](array, frozen)

    assert counted(refused) == {"borrowed": 0, "made": 1, "deleted": 1, "streams": 1}
    module.copy[1, 8](frozen, result)  # const: accepted


def test_types_that_have_no_read_only_objects_are_borrowed_always(module, array):
    tensors = type("Tensor", (exchange_native.Tensor,), {"__module__": "torch", "__qualname__": "Tensor"})
    parameter = type("Parameter", (tensors,), {})
    for kind in (tensors, parameter):
        result = out()
        foreign = tensor(result, kind)
        assert counted(lambda foreign=foreign: module.copy[1, 8](array, foreign))["borrowed"] == 1
        np.testing.assert_array_equal(result.copy_to_host(), HOST)


def test_the_object_is_kept_until_the_kernel_is_done(emulated, module, array):
    stream = bascule.stream()
    owner = Owner()
    foreign = exchange_native.Tensor(address(array), (8,), owner=owner)
    reference = weakref.ref(owner)
    result = out()
    module.copy[1, 8, stream](foreign, result)
    del foreign, owner
    gc.collect()
    assert reference() is not None
    stream.synchronize()
    gc.collect()
    assert reference() is None


# --- Invalid tables


def with_table(name: str, base: type = exchange_native.Tensor) -> type:
    return type(name, (base,), {"__dlpack_c_exchange_api__": exchange_native.table(name)})


@pytest.mark.parametrize("name", ["whole", "minor_99", "newer"])
def test_a_table_of_our_major_version_is_found_in_the_chain(module, array, name):
    result = out()
    assert counted(lambda: module.copy[1, 8](tensor(array, with_table(name)), result))["borrowed"] == 1
    np.testing.assert_array_equal(result.copy_to_host(), HOST)


def test_a_table_that_lends_nothing_gives_managed_tensors(module, array):
    result = out()
    used = counted(lambda: module.copy[1, 8](tensor(array, with_table("managed_only")), result))
    assert (used["borrowed"], used["made"]) == (0, 1)
    np.testing.assert_array_equal(result.copy_to_host(), HOST)


@pytest.mark.parametrize("name", ["newer_only", "cyclic", "misnamed", "streamless"])
def test_a_table_that_cannot_be_used_is_as_none(module, array, name):
    foreign = tensor(array, with_table(name))
    with pytest.raises(TypeError, match="argument 1 'in'"):
        module.copy[1, 8](foreign, out())
    both = with_table(name, WithInterface)
    WithInterface.reads = 0
    foreign = tensor(array, both)
    foreign.address = address(array)
    result = out()
    module.copy[1, 8](foreign, result)
    assert both.reads == 1
    np.testing.assert_array_equal(result.copy_to_host(), HOST)


@pytest.mark.parametrize("value", [None, 42, "table", exchange_native.table("whole").__class__])
def test_an_attribute_that_is_no_table_is_as_none(module, array, value):
    kind = type("Wrong", (exchange_native.Tensor,), {"__dlpack_c_exchange_api__": value})
    with pytest.raises(TypeError, match="argument 1 'in'"):
        module.copy[1, 8](tensor(array, kind), out())


def test_an_attribute_of_the_object_alone_does_not_count(module, array):
    kind = type("Late", (), {})
    late = kind()
    late.__dlpack_c_exchange_api__ = exchange_native.table("whole")
    with pytest.raises(TypeError, match="argument 1 'in'"):
        module.copy[1, 8](late, out())


def test_a_changed_type_is_looked_up_again(module, array):
    kind = with_table("whole")
    foreign = tensor(array, kind)
    result = out()  # after a free, the next launch queries addresses near it again
    for _ in range(3):
        assert counted(lambda: module.copy[1, 8](foreign, result))["borrowed"] == 1
    kind.__dlpack_c_exchange_api__ = exchange_native.table("managed_only")
    assert counted(lambda: module.copy[1, 8](foreign, result))["borrowed"] == 0
    kind.__dlpack_c_exchange_api__ = None
    for _ in range(3):
        with pytest.raises(TypeError, match="argument 1 'in'"):
            module.copy[1, 8](foreign, result)
    del kind.__dlpack_c_exchange_api__  # the base's table is visible again
    assert counted(lambda: module.copy[1, 8](foreign, result))["borrowed"] == 1


def test_many_types_come_and_go(module, array):
    result = out()
    for i in range(600):
        kind = with_table("whole" if i % 2 else "managed_only")
        foreign = tensor(array, kind)
        assert counted(lambda foreign=foreign: module.copy[1, 8](foreign, result))["borrowed"] == i % 2
        del kind, foreign


@pytest.mark.parametrize("error", [RuntimeError, ValueError, KeyboardInterrupt, BufferError])
def test_the_librarys_own_exception_passes_unchanged(module, array, error):
    with pytest.raises(error, match="as the test wants it"):
        module.copy[1, 8](tensor(array, failure=error), out())
    with pytest.raises(error, match="as the test wants it"):
        module.copy[1, 8](array, tensor(array, failure=error))


def test_what_the_table_cannot_describe_is_left_to_the_interface(module, array):
    result = out()
    foreign = with_interface(array, failure=BufferError)
    module.copy[1, 8](foreign, result)
    np.testing.assert_array_equal(result.copy_to_host(), HOST)
    with pytest.raises(RuntimeError, match="as the test wants it"):
        module.copy[1, 8](with_interface(array, failure=RuntimeError), result)


def test_a_table_that_fails_silently_is_named(module, array):
    with pytest.raises(TypeError, match="argument 1 'in'.*failed without an exception"):
        module.copy[1, 8](tensor(array, failure=None), out())


def test_a_work_stream_that_cannot_be_told_is_an_error(module, array):
    with pytest.raises(RuntimeError, match="there is no work stream"):
        module.copy[1, 8](tensor(array, with_table("no_stream_now")), out())


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"lanes": 2}, NotImplementedError, "'dtype'.*2 lanes"),
        ({"code": 0}, TypeError, "int32"),
        ({"strides": (2,)}, ValueError, "strides"),
        ({"strides": (2**62,)}, ValueError, "'strides'"),
        ({"device_type": 10}, ValueError, "type 10"),
        ({"device_type": CPU}, TypeError, "Tensor"),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused_by_name(module, array, options, error, words):
    foreign = tensor(array, **options)
    result = out()
    module.copy[1, 8](array, result)
    with traced() as operations, pytest.raises(error, match=words) as caught:
        module.copy[1, 8](foreign, result)
    assert "argument 1 'in'" in str(caught.value)
    assert [o for o in operations if o.kind in ("record", "wait", "launch")] == []


def test_memory_that_no_driver_knows_is_refused(module):
    with pytest.raises(ValueError, match="argument 1 'in'.*know"):
        module.copy[1, 8](exchange_native.Tensor(0x1234560000, (8,)), out())


def test_threads_launch_with_types_that_change(module, array):
    """Each thread changes its own type, while all threads share the cache of types."""
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            kind = with_table("whole")
            foreign, result = tensor(array, kind), out()
            for i in range(50):
                module.copy[1, 8](foreign, result)
                if i % 10 == seed:
                    kind.__dlpack_c_exchange_api__ = exchange_native.table("managed_only" if i % 20 < 10 else "whole")
            np.testing.assert_array_equal(result.copy_to_host(), HOST)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("device", [1, 7, -1, -2])
@pytest.mark.parametrize("elements", [8, 0])
def test_a_device_that_the_memory_is_not_on_is_refused_as_of_capsules(module, array, device, elements):
    result = out()
    fine = exchange_native.Tensor(address(array), (8,), owner=array)
    for _ in range(2):  # the second time the memory is known
        wrong = exchange_native.Tensor(address(array), (elements,), device_id=device, owner=array)
        with pytest.raises(ValueError, match="device"):
            module.copy[1, 8](wrong, result)
        with pytest.raises(ValueError, match="device"):
            module.copy.explain(wrong, result)
        module.copy[1, 8](fine, result)
    np.testing.assert_array_equal(result.copy_to_host(), HOST)
