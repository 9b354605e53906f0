"""The interface is found as Python finds the attribute; the code of a getter may change it, or launch, meanwhile."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

import bascule

SOURCE = """
__global__ void increment(float* x) { x[threadIdx.x] += 1; }
template <class T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }
"""


@pytest.fixture(scope="module")
def kernels():
    return bascule.compile(SOURCE)


@pytest.fixture
def x():
    return bascule.to_device(np.zeros(4, "f4"))


class AnswersWithAProperty:
    """`getattr(type, name)` returns a temporary property; the object's attribute is the dict."""

    def __init__(self, array: bascule.DeviceArray) -> None:
        self.array = array

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return property(lambda self: self.nowhere)
        return self.array.__cuda_array_interface__


def test_what_a_descriptor_makes_of_the_class_is_not_the_attribute(kernels, x):
    producer_type = type("Producer", (), {"__cuda_array_interface__": AnswersWithAProperty(x)})
    for n in range(1, 5):
        kernels.increment[1, 4](producer_type())
        gc.collect()
        assert x.copy_to_host().tolist() == [n] * 4


def test_an_attribute_of_the_metaclass_is_not_the_objects(kernels, x):
    metaclass = type("Meta", (type,), {"__cuda_array_interface__": property(lambda cls: x.__cuda_array_interface__)})
    for _ in range(3):
        with pytest.raises(TypeError, match="object of type"):
            kernels.increment[1, 4](metaclass("Producer", (), {})())


def test_an_instances_own_attribute_comes_before_a_plain_one_of_the_class_and_behind_a_property(kernels, x):
    other = bascule.to_device(np.zeros(4, "f4"))
    plain_type = type("Plain", (), {"__cuda_array_interface__": other.__cuda_array_interface__})
    property_type = type("Property", (), {"__cuda_array_interface__": property(lambda _: x.__cuda_array_interface__)})
    plain, decided = plain_type(), property_type()
    plain.__dict__["__cuda_array_interface__"] = x.__cuda_array_interface__
    decided.__dict__["__cuda_array_interface__"] = other.__cuda_array_interface__
    for producer in (plain, decided) * 3:
        kernels.increment[1, 4](producer)
    assert (x.copy_to_host().tolist(), other.copy_to_host().tolist()) == ([6] * 4, [0] * 4)


@pytest.mark.parametrize("kernel", ["increment", "twice"])
def test_a_getter_that_raises_attribute_error_is_read_once_and_heard(kernels, x, kernel):
    reads, has = [], [True]  # not attributes of the class, which must stay unchanged

    class Moody:
        @property
        def __cuda_array_interface__(self) -> Any:
            reads.append(self)
            if not has:
                raise AttributeError("not today")
            return x.__cuda_array_interface__

    for _ in range(4):  # so that the type is known
        kernels[kernel][1, 4](Moody())
    has.clear()
    for use in (
        lambda: kernels[kernel][1, 4](Moody()),
        lambda: kernels[kernel][1, 4].bind(Moody()),
        lambda: bascule.as_cuda_array(Moody()),
    ):
        reads.clear()
        with pytest.raises(TypeError, match="not today"):
            use()
        assert len(reads) == 1


def test_assignment_and_zeros_like_read_it_once(x):
    class Counted:
        reads = 0

        @property
        def __cuda_array_interface__(self) -> Any:
            self.reads += 1
            return x.__cuda_array_interface__

    source = Counted()
    bascule.to_device(np.ones(4, "f4"))[...] = source
    assert source.reads == 1
    assert bascule.zeros_like(source).shape == (4,)
    assert source.reads == 2


# --- Changes during the read ------------------------------------------------------------------------------------------


def test_a_getter_that_is_replaced_while_the_old_one_is_released_may_launch(kernels, x):
    """The old getter's finalizer runs before Python marks the type as changed."""
    launched = []

    class Farewell:
        def __del__(self) -> None:
            kernels.increment[1, 4](Producer())
            launched.append(True)

    def make(farewell: Farewell | None) -> property:
        return property(lambda self: (farewell, x.__cuda_array_interface__)[1])

    class Producer:
        pass

    Producer.__cuda_array_interface__ = make(Farewell())
    for _ in range(3):
        kernels.increment[1, 4](Producer())
    Producer.__cuda_array_interface__ = make(None)
    kernels.increment[1, 4](Producer())
    gc.collect()
    for i in range(300):  # until another type replaces it in the table
        other = type(f"Other{i}", (), {"__cuda_array_interface__": property(lambda _: x.__cuda_array_interface__)})
        for _ in range(3):
            kernels.increment[1, 4](other())
    gc.collect()
    assert x.copy_to_host()[0] == 4 + 900 + len(launched)


def test_a_getter_that_removes_itself_from_the_class_still_answers(kernels, x):
    class Producer:
        pass

    def getter(self: Producer) -> Any:
        del Producer.__cuda_array_interface__
        gc.collect()
        return x.__cuda_array_interface__

    for _ in range(5):
        Producer.__cuda_array_interface__ = property(getter)
        kernels.increment[1, 4](Producer())
    assert x.copy_to_host().tolist() == [5] * 4
    with pytest.raises(TypeError, match="object of type"):
        kernels.increment[1, 4](Producer())


def test_a_finalizer_that_empties_the_class_during_a_launch_harms_nothing(kernels, x):
    for _ in range(20):
        producer_type = type("Producer", (), {"__cuda_array_interface__": property(lambda s: s.read())})

        class Dropped:
            def __init__(self, producer: type) -> None:
                self.producer = producer

            def __del__(self) -> None:
                for name in ("__cuda_array_interface__", "read"):
                    if name in self.producer.__dict__:
                        delattr(self.producer, name)
                gc.collect()

        def read(self: Any, dropped: list[Any] = []) -> Any:  # noqa: B006
            dropped.append(Dropped(type(self)))
            if len(dropped) == 3:
                dropped.clear()
            return x.__cuda_array_interface__

        producer_type.read = read
        producer = producer_type()
        for _ in range(3):
            kernels.increment[1, 4](producer)
        with pytest.raises(TypeError, match="object of type"):
            kernels.increment[1, 4](producer)


# --- Launches during the read -----------------------------------------------------------------------------------------


def in_a_thread(call):
    caught = []

    def work() -> None:
        try:
            call()
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    for error in caught:
        raise error


USES = {
    "launch": lambda k, x: k.increment[1, 4](x),
    "forall": lambda k, x: k.increment.forall(4)(x),
    "by name": lambda k, x: k.increment.launch(1, 4, (x,)),
    "bind": lambda k, x: k.increment[1, 4].bind(x),
    "explain": lambda k, x: k.increment[1, 4].explain(x),
    "template": lambda k, x: k.twice[1, 4](x),
    "as_cuda_array": lambda _, x: bascule.as_cuda_array(x),
    "zeros_like": lambda _, x: bascule.zeros_like(x),
    "assignment": lambda _, x: bascule.zeros(4, "f4").__setitem__(..., x),
}


@pytest.mark.parametrize("where", ["here", "in a thread"])
@pytest.mark.parametrize(
    ("use", "attribute"),
    [(use, "__cuda_array_interface__") for use in USES]
    + [(use, "__dlpack__") for use in ("launch", "forall", "by name", "bind", "explain", "template")],
)
def test_an_array_that_uses_itself_while_it_is_read_is_a_recursion_error(kernels, use, attribute, where):
    class Endless:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

    def read(self: Any, **_: object) -> Any:
        return USES[use](kernels, self)

    setattr(Endless, attribute, property(read) if attribute == "__cuda_array_interface__" else read)
    with pytest.raises(RecursionError):
        (in_a_thread if where == "in a thread" else lambda call: call())(lambda: USES[use](kernels, Endless()))
    x = bascule.to_device(np.zeros(4, "f4"))
    kernels.increment[1, 4](x)
    assert x.copy_to_host().tolist() == [1] * 4


class Computed(dict):
    """A dict whose values are computed on request, as by a library that allocates late."""

    def __init__(self, stored: dict[str, object], **computed: object) -> None:
        super().__init__(stored)
        self.computed = computed
        self.asked: list[str] = []

    def __getitem__(self, key: str) -> object:
        self.asked.append(key)
        return self.computed[key] if key in self.computed else super().__getitem__(key)


class Missing(Computed):
    def __missing__(self, key: str) -> object:
        raise KeyError(key)


class Lacking(dict):
    """Provides its address only by `__missing__`."""

    def __missing__(self, key: str) -> object:
        return self["_data"] if key == "data" else dict.__getitem__({}, key)


@pytest.mark.parametrize("kind", [Computed, Missing])
def test_a_dict_subclass_is_read_by_its_own_getitem(kind):
    kernel = bascule.compile("__global__ void k(const int* p, int* o) { *o = p[0]; }").k
    a, b, out = (bascule.to_device(np.array([i], "i4")) for i in (1, 2, 0))
    data = b.__cuda_array_interface__["data"]

    class Array:
        __cuda_array_interface__ = kind(a.__cuda_array_interface__, data=data)

    kernel[1, 1](Array(), out)
    assert out.item() == 2
    asked = Array.__cuda_array_interface__.asked
    assert len(asked) == len(set(asked))
    assert bascule.as_cuda_array(Array()).item() == 2
    assert bascule.from_cuda_array_interface(Array.__cuda_array_interface__, owner=b).item() == 2


def test_a_dict_subclass_may_know_a_key_by_missing():
    b = bascule.to_device(np.array([2], "i4"))
    fields = dict(b.__cuda_array_interface__)
    fields["_data"] = fields.pop("data")
    assert bascule.from_cuda_array_interface(Lacking(fields), owner=b).item() == 2
    fields.pop("shape")
    with pytest.raises(bascule.ArgumentKeyError, match="has no 'shape'"):
        bascule.from_cuda_array_interface(Lacking(fields), owner=b)
