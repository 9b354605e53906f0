"""Types of the extension module. `bascule` re-exports the public part."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, ClassVar, TypeVar, final, overload

import numpy as np

from bascule._explain import Explanation

__version__: str

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")
_Out = TypeVar("_Out", bound="np.ndarray[Any, Any] | DeviceArray")

class Device:
    """A CUDA device, or the emulated device.

    `with device:` makes it the current device: new arrays, streams and events in the block are created on it. The current device belongs to
    the thread, or to the asyncio task. The thread's current CUDA context, which other libraries use, does not change.
    """
    @property
    def ordinal(self) -> int:
        """The device's number, from 0."""
    @property
    def name(self) -> str:
        """The device's name, as the driver has it."""
    @property
    def emulated(self) -> bool:
        """True for the emulated device, whose kernels run on the CPU."""
    @property
    def arch(self) -> str:
        """The architecture that kernels are compiled for: 'sm_90', or 'compute_80' for the emulated device."""
    @property
    def multiprocessors(self) -> int:
        """Number of streaming multiprocessors (SMs)."""
    @property
    def stream_priorities(self) -> tuple[int, int]:
        """The least and the most urgent priority of streams, such as `(0, -5)`."""
    def __enter__(self) -> Device:
        """Make it the current device of this thread or asyncio task; may be nested."""
    def __exit__(self, *exception: object) -> None: ...

class Stream:
    """A CUDA stream: work enqueued on it runs in order.

    `bascule.stream()` creates a stream and owns it; `external_stream` and the default-stream functions borrow one. Any thread may use it.
    `with stream:` makes it the current stream: launches, copies, fills, new arrays and events in the block use it unless they are given
    another one. The current stream belongs to the thread, or to the asyncio task; blocks may be nested, and a stream may be entered again.
    """
    @property
    def device(self) -> Device:
        """The device of the stream."""
    @property
    def priority(self) -> int:
        """Lower numbers are more urgent; 0 is the default."""
    def __enter__(self) -> Stream:
        """Make it the current stream of this thread or asyncio task; may be nested."""
    def __exit__(self, *exception: object) -> None: ...
    @property
    def handle(self) -> int:
        """The CUstream as an integer; 1 and 2 are the default streams."""
    def synchronize(self) -> None:
        """Wait on the host until all work enqueued on this stream has finished. Raises CudaError if any of it failed."""
    def query(self) -> bool:
        """True when all work enqueued on this stream has finished."""
    def wait(self, event: Event) -> None:
        """Make later work on this stream wait for `event`; the host does not wait."""
    def wait_event(self, event: Event) -> None:
        """The same as `wait`, by CuPy's and PyTorch's name."""
    def __cuda_stream__(self) -> tuple[int, int]:
        """The CUDA stream protocol: (version, handle)."""

class Event:
    """A point in the work of a stream, with a time stamp unless created with timing=False. Any thread may use it."""
    def record(self, stream: Any = None) -> None:
        """Record the work enqueued so far on `stream` (None: the current stream, else the default stream)."""
    def wait(self, stream: Any = None) -> None:
        """Make later work on `stream` (None: the current stream, else the default stream) wait for this event. The stream may be on another device."""
    def query(self) -> bool:
        """True when the recorded work has finished."""
    def synchronize(self) -> None:
        """Wait on the host until the recorded work has finished."""
    def elapsed(self, end: Event) -> float:
        """Milliseconds from this event to `end`. Both must be recorded, finished, and created with timing."""
    def elapsed_time(self, end: Event) -> float:
        """The same as `elapsed`, by Numba's and PyTorch's name."""
    @property
    def device(self) -> Device:
        """The device that the event was created on."""

class Graph:
    """Work that is captured once and launched any number of times.

    In a `with` block, launches, copies, fills and events go to a stream of the graph, which captures them instead of executing them.
    `launch` then enqueues all of them at once, which costs the host about as much as one launch. Arguments are captured by value: each
    launch uses the same arrays and numbers. Host memory that is copied to the device is read at each launch.

    Arrays may name streams outside the graph: each launch waits for the work enqueued on them by then, and their later work waits for the
    launch. Another stream joins the capture by waiting for an event that was recorded in it, and the graph's stream must wait for it
    before the block ends. The graph keeps the arrays alive until it is destroyed and its last launch has finished.

    Operations that wait for the device (`copy_to_host`, `synchronize`, printing an array) and kernels that are not loaded yet are
    errors in the block: call `kernel.prepare(...)` before it. An exception in the block discards the capture. Any thread may launch
    the graph.

    >>> import numpy as np, bascule
    >>> twice = bascule.compile("__global__ void twice(float* x) { x[threadIdx.x] *= 2; }").twice.prepare()
    >>> x = bascule.to_device(np.ones(4, "f4"))
    >>> with bascule.Graph() as graph:
    ...     twice[1, 4](x)
    ...     twice[1, 4](x)
    >>> for _ in range(3):
    ...     graph.launch()
    >>> x.copy_to_host()
    array([64., 64., 64., 64.], dtype=float32)
    """
    def __init__(self) -> None: ...
    def __enter__(self) -> Graph: ...
    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None: ...
    @property
    def stream(self) -> Stream:
        """The bascule.Stream that the `with` block captures. Nothing runs on it."""
    @property
    def device(self) -> Device:
        """The device of the graph."""
    def update(self) -> GraphUpdate:
        """Capture again: in `with graph.update():`, the block replaces the work of the graph for later launches.

        If the new work has the same topology (the same kinds of operations in the same order and on the same streams), the executable graph is
        updated in place, which is much cheaper than a new one; arrays, numbers, grids and kernels may differ. Launches that are already
        enqueued do not change. An exception in the block leaves the graph unchanged.
        """
    def launch(self, stream: Any = None) -> None:
        """Enqueue the captured work. Does not wait.

        stream : where it is enqueued; None means the current stream, else the default stream. The first launch instantiates the graph.
        Launches of one graph run one after another.
        """
    def __call__(self, stream: Any = None) -> None:
        """Same as `launch`."""
    def __len__(self) -> int:
        """Number of captured operations."""
    def __bool__(self) -> bool: ...

class GraphUpdate:
    """Returned by `bascule.Graph.update`, for `with`."""
    def __enter__(self) -> Graph: ...
    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None: ...

@final
class BitMask:
    """A mask with one bit per element, as cuDF uses.

    Elements are in C order, least significant bit first within a byte. Keeps the memory alive. Exports `__cuda_array_interface__` with typestr `|t1`.
    """
    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
    @property
    def size(self) -> int:
        """Number of elements (bits)."""
    @property
    def stream(self) -> Stream | None:
        """The bound Stream, or None for a view created with sync=False."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def copy_to_host(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Copy to a NumPy array with one bool per element, and wait for the copy."""

@final
class DeviceArray:
    """An array in device, pinned or managed memory.

    Created by `to_device`, `device_array`, `pinned_array`, `managed_array` and `as_cuda_array`. Indexing returns a view of the same
    memory. Exports `__cuda_array_interface__` (version 3) with its bound stream, and `__dlpack__`, so that CuPy, PyTorch, Numba and others
    use it without a copy. Operations on its elements (`astype`, `copy`, `fill`, assignment, copies to and from the host) are enqueued on
    the bound stream, or on the stream that is given, which then waits for the bound stream on the device, and the bound stream for it.

    Views, DLPack capsules, `export` and enqueued work keep the memory alive. Any thread may use an array; threads that write the same
    elements must order their work themselves.

    It has no arithmetic: operators and comparisons raise a TypeError that names CuPy; iteration and truth value raise one that names
    `copy_to_host`. `==` compares identity, as for Numba's device arrays, and arrays can be dict keys. `repr` shows the values and waits
    for the bound stream.

    >>> import numpy as np, bascule
    >>> x = bascule.to_device(np.arange(6, dtype="f4").reshape(2, 3))
    >>> x[:, ::2].T.copy_to_host()
    array([[0., 3.],
           [2., 5.]], dtype=float32)
    """

    __array_ufunc__: ClassVar[None]
    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy.dtype of the elements."""
    @property
    def ndim(self) -> int:
        """Number of axes."""
    @property
    def size(self) -> int:
        """Number of elements."""
    @property
    def itemsize(self) -> int:
        """Bytes per element."""
    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without gaps between them."""
    @property
    def c_contiguous(self) -> bool:
        """True when the elements are contiguous in C order."""
    @property
    def f_contiguous(self) -> bool:
        """True when the elements are contiguous in Fortran order."""
    @property
    def host_accessible(self) -> bool:
        """True for pinned and managed arrays, which NumPy can view."""
    @property
    def readonly(self) -> bool:
        """True when neither kernels nor copies may write to it."""
    @property
    def mask(self) -> DeviceArray | BitMask | None:
        """Which elements are valid: None (all of them), a DeviceArray of bools or integers, or a BitMask.

        True is valid. The mask has the array's shape or broadcasts to it. numpy.ma uses the opposite convention: to_device and copy_to_host
        invert the mask.
        """
    @property
    def stream(self) -> Stream | None:
        """The bound Stream, or None for a view created with sync=False."""
    @property
    def device(self) -> Device:
        """The Device that uses the memory."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA Array Interface, version 3. `stream` is the bound stream, which lives as long as the array and which consumers wait for; None for a view created with sync=False."""
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export the array as a DLPack capsule, for `from_dlpack` of other libraries. The capsule keeps the array alive.

        stream : the consumer's stream: None, -1, 1, 2, a stream handle, or an object that names a stream. It is made to wait for the array's
            bound stream; the host does not wait. None means the legacy default stream; for memory that the host can read (pinned, managed)
            None means the host, and the call waits. -1 means no ordering. 0 is an error.
        max_version : the newest (major, minor) that the consumer supports. From (1, 0) on the capsule tells whether the array is read-only and
            whether it is a copy; without max_version a read-only array is an error.
        dl_device : None or the array's own device; (1, 0) for host memory, with a copy where the host cannot read the array.
        copy : True copies, in the order of the bound stream; False raises where a copy is needed; None copies only where it is needed.

        Raises BufferError for arrays that DLPack cannot describe: masks, structures, times, opaque bytes, strides that are not multiples of
        the item size.
        """
    def __dlpack_device__(self) -> tuple[int, int]:
        """The DLPack device type and number: 2 (CUDA) with the device's number; 3 (pinned) or 13 (managed) with 0. The emulated
        device is 2 (CUDA), as a GPU is.
        """
    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's array interface of a pinned or managed array. Raises AttributeError for device memory."""
    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """For numpy.asarray: a view of a pinned or managed array. Raises TypeError for device memory."""
    def export(self, *, version: int = 3, stream: bool | None = True) -> ExportedArray:
        """Export the array with another version of the interface, or without a stream.

        version : 0 to 3; the dict has the entries that this version defines. Versions before 3 have no stream.
        stream : True names the bound stream. None names no stream: the caller must then synchronise before others read the array.

        >>> import bascule
        >>> x = bascule.device_array(4, "f4")
        >>> sorted(x.export(version=2).__cuda_array_interface__)
        ['data', 'shape', 'strides', 'typestr', 'version']
        """
    def __getitem__(self, key: Any) -> DeviceArray:
        """A view selected by integers, slices, `...` and None, by NumPy's rules.

        An integer for every axis gives a 0-dimensional view, not a number; `x[2, 3].item()` waits for the device and returns
        the number. `x["field"]` is a view of one field of structures. Index arrays and masks are refused, because they would
        need a copy.

        >>> import numpy as np, bascule
        >>> x = bascule.to_device(np.arange(12).reshape(3, 4))
        >>> x[::-1, 1:3].copy_to_host()
        array([[ 9, 10],
               [ 5,  6],
               [ 1,  2]])
        """
    def __setitem__(self, key: Any, value: Any) -> None:
        """Set the selected elements, after all work enqueued on the bound stream. Does not wait.

        value : a number, numbers, or a host or device array that broadcasts to the shape of the elements.

        Values are converted by NumPy's casting rule 'same_kind', as by `numpy.copyto`: float64 to float32, but not float to
        int, complex to float or int64 to uint8. Integers that are not in an array must be in the range of the dtype.
        Broadcasting, and conversion of a device array, run on the device.

        Raises TypeError for values of another kind, OverflowError for an integer out of range, and ValueError for a shape that
        does not fit.

        >>> import numpy as np, bascule
        >>> x = bascule.to_device(np.zeros(4, "i4"))
        >>> x[1:3] = 7
        >>> x.copy_to_host()
        array([0, 7, 7, 0], dtype=int32)
        """
    def reshape(self, *shape: Any) -> DeviceArray:
        """A view of the same elements, in C order, in another shape; one extent may be -1.

        Raises where NumPy would copy: use `x.copy().reshape(...)`.

        >>> import numpy as np, bascule
        >>> bascule.to_device(np.arange(6)).reshape(2, -1).shape
        (2, 3)
        """
    def ravel(self, order: str = "C") -> DeviceArray:
        """A one-dimensional view of all elements. Raises where NumPy would copy.

        order : 'C' or 'F', or 'K': memory order, for elementwise kernels that take a raw pointer. 'K' raises for an array
        with gaps, repeated elements (strides of 0) or negative strides.

        >>> import numpy as np, bascule
        >>> x = bascule.to_device(np.arange(6).reshape(2, 3)).T
        >>> x.ravel("K").copy_to_host()
        array([0, 1, 2, 3, 4, 5])
        """
    def transpose(self, *axes: Any) -> DeviceArray:
        """A view with the axes in another order, by default the reverse one.

        >>> import numpy as np, bascule
        >>> bascule.to_device(np.zeros((2, 3, 4))).transpose(2, 0, 1).shape
        (4, 2, 3)
        """
    @property
    def T(self) -> DeviceArray:  # noqa: N802
        """A view with the axes in reverse order."""
    def view(self, dtype: Any) -> DeviceArray:
        """A view of the same bytes as elements of another dtype.

        If the item size differs, the last axis must be contiguous and its length changes, as in NumPy.

        >>> import numpy as np, bascule
        >>> bascule.to_device(np.ones(2, "f4")).view("u2").copy_to_host()
        array([    0, 16256,     0, 16256], dtype=uint16)
        """
    def astype(self, dtype: Any, *, stream: Any = None) -> DeviceArray:
        """Convert every element to `dtype` in a new array, after all work enqueued on the bound stream. Does not wait.

        dtype : numpy.dtype or anything that makes one: a number or bool. As in NumPy, floats are truncated toward zero, integers wrap, and
        nonzero is True; a float outside the integer type's range gives an unspecified value. Complex converts to complex and bool only.
        stream : where the operation is enqueued, and the stream of the new array; None means the current stream, else the bound stream.

        The first use compiles a kernel, which the cache keeps.

        >>> import numpy as np, bascule
        >>> bascule.to_device(np.array([1.7, -1.7])).astype("i4").copy_to_host()
        array([ 1, -1], dtype=int32)
        """
    def copy(self, order: str = "C", *, stream: Any = None) -> DeviceArray:
        """Copy the elements to a new array, after all work enqueued on the bound stream. Does not wait.

        order : 'C', 'F', or 'K': Fortran order if the array has that, else C.
        stream : where the operation is enqueued, and the stream of the new array; None means the current stream, else the bound stream.

        >>> import numpy as np, bascule
        >>> bascule.to_device(np.arange(6).reshape(2, 3))[:, ::2].copy().strides
        (16, 8)
        """
    def fill(self, value: Any, *, stream: Any = None) -> None:
        """Set every element to `value`, after all work enqueued on the bound stream. Does not wait.

        value : anything that NumPy can assign to one element of this dtype; numbers are converted as in `x[...] = value`.
        stream : where the operation is enqueued; None means the current stream, else the bound stream.

        >>> import numpy as np, bascule
        >>> x = bascule.device_array(3, "f4")
        >>> x.fill(1.5)
        >>> x.copy_to_host()
        array([1.5, 1.5, 1.5], dtype=float32)
        """
    @overload
    def copy_to_host(self, out: None = None, *, stream: Any = None) -> np.ndarray[Any, Any]:
        """Copy to a NumPy array, after all work enqueued on the bound stream, and wait for the copy.

        out : numpy.ndarray of the same shape and dtype, or a pinned or managed array, to fill and return; None for a new numpy.ndarray.
        stream : where the copy is enqueued; None means the current stream, else the bound stream. With a stream and pinned `out` the call
        does not wait: synchronise the stream before you read `out`.

        >>> import numpy as np, bascule
        >>> bascule.to_device(np.arange(3)).copy_to_host()
        array([0, 1, 2])
        """
    @overload
    def copy_to_host(self, out: _Out, *, stream: Any = None) -> _Out: ...
    def copy_from_host(self, values: Any, *, stream: Any = None) -> None:
        """Copy host values to the array, after all work enqueued on the bound stream. Does not wait.

        values : numpy.ndarray of the same shape and dtype, or numbers of that shape, which are converted as in `x[...] = value`. It may be changed when this returns, unless its memory
        is pinned: then once the stream has reached the copy.
        stream : where the copy is enqueued; None means the current stream, else the bound stream.

        >>> import numpy as np, bascule
        >>> x = bascule.device_array(2, "f4")
        >>> x.copy_from_host([1, 2])
        >>> x.copy_to_host()
        array([1., 2.], dtype=float32)
        """
    def item(self, *index: int) -> Any:
        """The only element, or that at an index, as a Python scalar, after all work enqueued on the bound stream.

        Waits for the device: for many elements use one `copy_to_host`. `float(x[i])`, `int(x[i])` and `complex(x[i])` wait too.

        Raises ValueError for an array of another size than 1.

        >>> import numpy as np, bascule
        >>> x = bascule.to_device(np.array([1.5, 2.5]))
        >>> x.item(1), float(x[0])
        (2.5, 1.5)
        """
    def __float__(self) -> float: ...
    def __int__(self) -> int: ...
    def __complex__(self) -> complex: ...
    def __len__(self) -> int: ...
    def _repr_html_(self) -> str: ...

class ExportedArray:
    """An array that exports another version of `__cuda_array_interface__`; created by `DeviceArray.export`. Keeps the array alive."""
    @property
    def array(self) -> DeviceArray:
        """The DeviceArray."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

class PointerAttributes:
    """What the driver knows of an address."""
    @property
    def kind(self) -> str:
        """'device'; 'pool' (device memory of a stream-ordered pool); 'pinned' (host memory with the same address on host and device); 'mapped' (host memory with another address on the device); 'managed'."""
    @property
    def device(self) -> int:
        """The device's ordinal."""
    @property
    def context(self) -> int | None:
        """The CUcontext as an integer, or None, as for memory of a pool."""
    @property
    def device_address(self) -> int:
        """The address that kernels use."""
    @property
    def host_address(self) -> int | None:
        """The address that the host uses, or None."""
    @property
    def allocation(self) -> tuple[int, int]:
        """(address, bytes) of the allocation that contains the address."""

class MemoryPool:
    """The pool that a device's new arrays take their memory from; get it with `bascule.memory_pool()`.

    Arrays are freed in the order of their stream, which waits for nothing. What is freed stays in the pool, for the next
    arrays, until it is trimmed. Other libraries have pools of their own.
    """
    @property
    def device(self) -> Device:
        """The device."""
    @property
    def used_bytes(self) -> int:
        """Bytes of arrays that live, or whose stream has not reached the end of their use."""
    @property
    def reserved_bytes(self) -> int:
        """Bytes of the device that the pool holds: those in use and those kept for the next arrays."""
    @property
    def release_threshold(self) -> int:
        """How many reserved bytes are kept when the host synchronises; the driver takes back the rest that is unused. At first 2**64 - 1: everything is kept."""
    @release_threshold.setter
    def release_threshold(self, bytes: int) -> None: ...
    def trim(self, keep_bytes: int = 0) -> None:
        """Wait for the device, and return unused memory to the driver, for other libraries and processes, but for `keep_bytes`.

        >>> import bascule
        >>> bascule.memory_pool().trim()
        """

class RawPointer:
    """A device address that the caller vouches for."""
    @property
    def address(self) -> int: ...

class LaunchConfig:
    """The geometry and attributes of a launch. Immutable; compares and hashes by value.

    grid : int or tuple of up to three ints, blocks per grid
    block : int or tuple of up to three ints, threads per block
    shared_bytes : int, bytes of dynamic shared memory per block
    cooperative : bool, all blocks are resident at once, as grid synchronisation needs
    cluster : int or tuple of up to three ints, blocks per cluster; needs compute capability 9.0
    programmatic : bool, the launch may start before the previous launch on the stream has ended; needs compute capability 9.0
    priority : int, lower is more urgent; None means the stream's priority
    shared_carveout : int, percent of the on-chip memory to prefer as shared memory; None leaves the choice to the driver

    >>> bascule.LaunchConfig(8, 128, cooperative=True)
    """
    def __init__(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *,
        shared_bytes: int = 0,
        cooperative: bool = False,
        cluster: int | Sequence[int] | None = None,
        programmatic: bool = False,
        priority: int | None = None,
        shared_carveout: int | None = None,
    ) -> None: ...
    @property
    def grid(self) -> tuple[int, int, int]: ...
    @property
    def block(self) -> tuple[int, int, int]: ...
    @property
    def shared_bytes(self) -> int: ...
    @property
    def cooperative(self) -> bool: ...
    @property
    def cluster(self) -> tuple[int, int, int]: ...
    @property
    def programmatic(self) -> bool: ...
    @property
    def priority(self) -> int | None: ...
    @property
    def shared_carveout(self) -> int | None: ...

class CompileOptions:
    """Options of a compile. Immutable; compares and hashes by value. All options are keywords and optional.

    std : 'c++17', 'c++20', or from NVRTC 13.3 on 'c++23'
    defines : dict of macro names to str, int, bool or None; None defines the bare name, which is 1
    include_paths : list of directories for #include; relative ones are made absolute now, `~` is not expanded
    headers : dict of names to texts, found by #include "name" as if they were files
    lineinfo : bool, source lines in the image, for profilers; always on for the emulated device
    debug : bool, device code for debuggers (-G), and views that check every index (define BASCULE_CHECK_BOUNDS as 0 or 1 to choose the
        checks alone)
    fast_math : bool, faster and less accurate math functions (-use_fast_math)
    max_registers : int, the most registers per thread, 1 to 255; what does not fit is spilled to local memory
    arch : 'sm_90', 'sm_90a' or 'compute_80'; None means the current device's
    pch : bool, whether large headers are precompiled for the process's other compiles: True from the first compile on,
        which takes half as long again, False never; None, the default, from the second compile on that has the same headers.
        Needs NVRTC 12.8, and up to 1 GiB in TMPDIR, /dev/shm or /tmp; the image is the same
    keep_sources : path of a directory; the text is written to a file there, and the source lines of the image name that file, so that
        cuda-gdb and Nsight Compute show it. Turns lineinfo on. None takes BASCULE_KEEP_SOURCES, if that is set
    extra : list of str, further NVRTC options, one per item

    >>> bascule.CompileOptions(std="c++20", defines={"TILE": 32}, fast_math=True)
    """
    def __init__(
        self,
        *,
        std: str = "c++17",
        defines: dict[str, str | int | bool | None] = ...,
        include_paths: Sequence[str | bytes | PathLike[str]] = ...,
        headers: dict[str, str] = ...,
        lineinfo: bool = False,
        debug: bool = False,
        fast_math: bool = False,
        max_registers: int | None = None,
        arch: str | None = None,
        pch: bool | None = None,
        keep_sources: str | bytes | PathLike[str] | None = None,
        extra: Sequence[str] = ...,
    ) -> None: ...
    @property
    def std(self) -> str: ...
    @property
    def defines(self) -> dict[str, str | None]: ...
    @property
    def include_paths(self) -> tuple[str, ...]: ...
    @property
    def headers(self) -> dict[str, str]: ...
    @property
    def lineinfo(self) -> bool: ...
    @property
    def debug(self) -> bool: ...
    @property
    def fast_math(self) -> bool: ...
    @property
    def max_registers(self) -> int | None: ...
    @property
    def arch(self) -> str | None: ...
    @property
    def pch(self) -> bool | None: ...
    @property
    def keep_sources(self) -> str | None: ...
    @property
    def extra(self) -> tuple[str, ...]: ...
    def __hash__(self) -> int: ...
    def __getstate__(self) -> dict[str, Any]: ...

class Diagnostic:
    """A message of the compiler about one place in a text."""
    @property
    def severity(self) -> str:
        """'error', 'warning', 'remark' or 'note'."""
    @property
    def number(self) -> str:
        """NVRTC's number of the message, such as '177-D'; '' if it has none."""
    @property
    def file(self) -> str:
        """The user's file, or a header; '' if the message has no place."""
    @property
    def line(self) -> int | None:
        """Line in the file, from 1, or None."""
    @property
    def column(self) -> int | None:
        """Column in characters of the source line, from 1, or None."""
    @property
    def message(self) -> str:
        """The text of the message."""
    @property
    def notes(self) -> list[Diagnostic]:
        """Diagnostics that belong to this one: candidates, instantiations."""
    @property
    def source_line(self) -> str:
        """The text of the line; '' if unknown."""

class CacheStatistics:
    """Counts since the start of the process."""
    @property
    def compiled(self) -> int:
        """Programs that were compiled."""
    @property
    def from_memory(self) -> int:
        """Programs found in memory."""
    @property
    def from_disk(self) -> int:
        """Programs found on disk."""
    @property
    def nvrtc_calls(self) -> int:
        """Calls of nvrtcCompileProgram."""
    def _repr_html_(self) -> str: ...

@final
class BoundLaunch:
    """A kernel with its launch configuration and its arguments: calling it launches.

    Made by `kernel[grid, block].bind(arguments)`. The arguments were checked then; each call waits for the streams that the arrays
    named then and makes them wait, on the stream that is current at the call where none was given. It keeps the arrays alive. Any thread may call it.
    """
    def __call__(self) -> None: ...
    def rebind(self, *args: Any, **kwargs: Any) -> None:
        """Read and check the same arguments again, or others in their place. When one is refused the old ones stay bound."""
    def _repr_html_(self) -> str: ...
    def _repr_pretty_(self, printer: Any, cycle: bool) -> None: ...
    __signature__: ClassVar[Any]

@final
class Launcher:
    """A kernel with its launch configuration: calling it launches.

    Made by `kernel[grid, block]`, `kernel[grid, block, stream, shared_bytes]` and `kernel.forall(n)`. The call checks every
    argument against the kernel's parameters first, then orders the launch with the arrays' streams; it does not wait for the
    kernel. Any thread may call it.
    """
    def bind(self, *args: Any, **kwargs: Any) -> BoundLaunch:
        """Check the arguments once, launch many times: returns an object whose call launches.

        The arrays, their addresses and their streams are read now; each launch is ordered with those streams. The arrays are kept
        alive. `rebind` reads again.
        """
    def options(
        self, *, peer: bool | None = None, sync: bool | None = None, streams: Mapping[str, Any] | None = None
    ) -> Launcher:
        """The same launcher with other rules of order; options that are omitted stay as they are.

        peer : True takes arrays of other devices: their memory is opened to kernels on the launch's device, and their streams are
        ordered with the launch as others are. Off, they are refused.
        sync : False ignores the streams of all arrays for this launch; they are checked, and the order is yours.
        streams : a dict from parameters to streams, for arrays that name none: {"x": stream}.
        """
    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """What calling the launcher with these arguments would do: where, with which grid, and which streams would wait for which,
        and why. Nothing is enqueued. Returns a bascule.Explanation, whose text says it all.
        """
    def __call__(self, *args: Any, **kwargs: Any) -> None: ...
    def _repr_html_(self) -> str: ...
    def _repr_pretty_(self, printer: Any, cycle: bool) -> None: ...
    __signature__: ClassVar[Any]

class KernelAttributes:
    """What the compiler made of a kernel. Does not change."""
    @property
    def registers(self) -> int:
        """Registers per thread."""
    @property
    def static_shared_bytes(self) -> int:
        """Static shared memory per block, in bytes."""
    @property
    def local_bytes(self) -> int:
        """Local memory per thread, in bytes: arrays and spilled registers."""
    @property
    def constant_bytes(self) -> int:
        """Constant memory of the module, in bytes."""
    @property
    def max_threads_per_block(self) -> int: ...
    @property
    def max_dynamic_shared_bytes(self) -> int:
        """The most dynamic shared memory per block, in bytes."""
    @property
    def shared_carveout(self) -> int | None:
        """Percent of the on-chip memory that is preferred as shared memory; None: the driver chooses."""
    @property
    def ptx_version(self) -> int:
        """80 is compute_80."""
    @property
    def binary_version(self) -> int:
        """90 is sm_90."""

class Occupancy:
    """Occupancy of a kernel with one block size. Does not change."""
    @property
    def blocks(self) -> int:
        """Resident blocks per SM."""
    @property
    def warps(self) -> float:
        """Resident warps over the most that an SM holds: 0 to 1."""

class Kernel:
    """One __global__ function of a Module.

    `kernel[grid, block](arguments)` launches it; arguments are checked against the C++ parameters and converted. Compiled at first use;
    any thread may use it.
    """
    def __getitem__(self, key: Any) -> Launcher: ...
    def __call__(self, *args: Any, **kwargs: Any) -> None: ...
    def forall(self, work: int | Sequence[int], *, stream: Any = None, shared_bytes: int = 0) -> Launcher:
        """A launcher with one thread for each of `work` items (an int, or up to three extents); the block size fills the device.
        With no work the call checks its arguments and launches nothing.
        """
    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        arguments: tuple[Any, ...],
        *,
        stream: Any = None,
        shared_bytes: int = 0,
        cooperative: bool = False,
        peer: bool | None = None,
        sync: bool | None = None,
        streams: Mapping[str, Any] | None = None,
        cluster: int | Sequence[int] | None = None,
        programmatic: bool = False,
        priority: int | None = None,
        shared_carveout: int | None = None,
    ) -> None:
        """Launch once with every option by name: those of bascule.LaunchConfig, and peer, sync and streams as Launcher.options has them."""
    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """What a launch with these arguments would do, but for its grid; `kernel[grid, block].explain(...)` says that too.

        Nothing is enqueued. Returns a bascule.Explanation: which function, on which device and stream, which streams would wait for which,
        and why.
        """
    def prepare(self, *args: Any, **kwargs: Any) -> Kernel:
        """Compile and load now; launch nothing. With arguments, check them as a launch would.
        Returns the kernel: of a template or overloads, the one that these arguments choose.
        """
    def prepare_async(self, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Kernel]:
        """`prepare` for asyncio: the kernel is compiled in a thread, and the event loop goes on.

        Takes what `prepare` takes, and returns a coroutine; awaited, it gives the kernel. Several at once compile in parallel, as far as NVRTC
        does: texts with large headers one after the other. A task that is cancelled leaves its compile running, and the result is in the
        cache. `with device:` and `with stream:` hold as where it is awaited.

        >>> kernels = await asyncio.gather(a.prepare_async(x), b.prepare_async(x, y))
        """
    def instantiate(self, *args: Any, **kwargs: Any) -> Kernel:
        """The template with these arguments: `instantiate("float", 256)`, `instantiate(BLOCK=256)`.

        Strings are C++ text; integers, bools and NumPy dtypes are taken as they are. What is left out comes from the arguments of a launch:
        the arrays decide first, then NumPy scalars, then Python numbers (bool, int, double), then the template's defaults.
        """
    def overload(self, parameter_types: str) -> Kernel:
        """The overload with exactly these parameter types: `overload("float*, int")`."""
    def get_global(self, name: str) -> DeviceArray:
        """A `__device__` or `__constant__` variable of this kernel's code, as a DeviceArray that views it.

        name : "table", "ns::table", or "scale<float>" for an instance of a variable template.

        Shape and dtype are the declared ones: `float table[4][8]` is (4, 8) float32, a vector type such as float4 is one more axis, a
        pointer an integer. A struct is opaque bytes, also one whose type has no name: `struct { float a, b; int n; } cfg` has dtype V12. View
        what is read through a NumPy dtype; write a structured scalar or array, or bytes, of the same size.

        `copy_to_host` reads it and `copy_from_host` writes it, in the order of a stream; a launch does not know which variables its kernel
        uses, so do both on one stream. A `__constant__` variable is filled and assigned like any array; kernels take it where they declare
        const elements, and other libraries get it read-only, since no kernel can write it. A template's instances have variables of their own.
        """
    @property
    def name(self) -> str: ...
    @property
    def is_template(self) -> bool:
        """Whether an instance has still to be chosen, by the arguments or `instantiate`."""
    @property
    def signature(self) -> str:
        """The parameter list as the compiler sees it; of a template, as the text declares it."""
    @property
    def parameters(self) -> list[tuple[str, str]]:
        """A list of (name, C++ type)."""
    @property
    def attributes(self) -> KernelAttributes:
        """A KernelAttributes: registers, shared, local and constant memory, limits, versions."""
    def occupancy(self, block: int | Sequence[int], shared_bytes: int = 0) -> Occupancy:
        """How many blocks of `block` threads (an int, or up to three extents) run on a multiprocessor at once.

        >>> kernel.occupancy(256).blocks
        """
    def best_block(self, shared_bytes: int = 0) -> int:
        """The number of threads a block that fills the device best, with this much dynamic shared memory."""
    @property
    def lowered_name(self) -> str:
        """The function's name in `ptx` and `cubin`, for programs that load those themselves."""
    @property
    def ptx(self) -> str: ...
    @property
    def cubin(self) -> bytes: ...
    @property
    def log(self) -> str:
        """What NVRTC said: warnings, at the lines of your text."""
    @property
    def source(self) -> str: ...
    @property
    def origin(self) -> str:
        """Where its code came from: 'compiled', 'memory' or 'disk'."""
    @property
    def compile_ms(self) -> float:
        """Milliseconds in NVRTC when its image was made."""
    @property
    def load_ms(self) -> float:
        """Milliseconds in the driver to load its image."""
    def _repr_html_(self) -> str: ...
    def _repr_pretty_(self, printer: Any, cycle: bool) -> None: ...
    __signature__: ClassVar[Any]
    def _compile_ahead(self) -> tuple[str, float]: ...

class Module:
    """A CUDA C++ text, compiled: its kernels are attributes, and items by qualified name.

    `module.scale`, `module["ns::scale"]`. The module's own attributes win over kernels of the same name; `module["kernels"]` always
    means the kernel.
    """
    @property
    def kernels(self) -> Any:
        """Names of the __global__ functions, those that macros and includes make too."""
    @property
    def source(self) -> str: ...
    def __getattr__(self, name: str) -> Kernel: ...
    def __getitem__(self, name: str) -> Kernel: ...
    def instantiate(self, instances: dict[str, Sequence[Any]], /) -> dict[str, list[Kernel]]:
        """Compile instances of templates together, in one run of the compiler: their headers are read once.

        instances : dict of kernel names to lists, with a tuple of template arguments for each instance, or a dict by template parameter, or
            a single argument; strings, integers, bools and NumPy dtypes as in Kernel.instantiate. All arguments of a template are needed.

        Returns a dict of the same form, with Kernels. Launches of `module.name` whose arguments mean one of these instances find it without
        a compile. The instances share one image, and so one copy of the text's variables, unless they were asked for before. The cache on
        disk keeps the set: the same set is found in the next process, another set is compiled anew.

        >>> module.instantiate({"scale": [("float",), ("double",)], "block_sum": [{"T": "int", "BLOCK": 128}]})
        """
    def precompile(
        self, instances: dict[str, Sequence[Any]], /, *, workers: int | None = None, progress: bool = True
    ) -> dict[str, list[Kernel]]:
        """Compile instances of templates in processes of their own, several at once, into the cache on disk.

        instances : dict of kernel names to lists of template arguments, as `instantiate` takes it. Each instance is an image of its own, the
            one that a launch with such arguments looks for; `instantiate` makes one image of all.
        workers : int, how many processes compile; None is one for each processor, and at most one for each instance
        progress : bool, show a bar where rich is installed and standard error is a terminal, or in a notebook

        Returns a dict of the same form, with Kernels: they, and launches of `module.name` with such arguments, find the images on disk. What
        was there before is not compiled again. Without a cache on disk, which is where the processes leave what they compile, nothing is
        compiled, and a CacheError says so. Ctrl-C ends the processes. Any thread may call it.

        Raises CompileError when instances fail, after all others are compiled: it says which failed and why.

        >>> module.precompile({"scale": ["float", "double"]}, workers=2)
        """
    def prepare_async(self, instances: dict[str, Sequence[Any]] | None = None, /) -> Coroutine[Any, Any, Module]:
        """Compile and load every kernel that is not a template in a thread, while the event loop of asyncio goes on.

        instances : dict, instances of templates that are compiled together and loaded too, as `instantiate` takes it

        Returns a coroutine; awaited, it gives the module. See Kernel.prepare_async.

        >>> await module.prepare_async({"scale": ["float", "double"]})
        """
    def get_global(self, name: str) -> DeviceArray:
        """A `__device__` or `__constant__` variable that all kernels of this module share, as a DeviceArray: see Kernel.get_global.

        With templates in the text each instance has its own variables, so ask a kernel instead.
        """
    def _compile(self) -> str | None: ...
    def _repr_html_(self) -> str: ...
    def _repr_pretty_(self, printer: Any, cycle: bool) -> None: ...
    def _ipython_key_completions_(self) -> list[str]: ...
    def _compile_ahead(self) -> tuple[str, float]: ...

def device(device: Device | int | None) -> Device:
    """The device with this number. `with bascule.device(1):` makes it the current device.

    >>> import bascule
    >>> with bascule.device(0) as device:
    ...     bascule.device_array(3).device == device
    True
    """

def current_device() -> Device:
    """The device that new arrays, streams and events are created on."""

def current_stream() -> Stream | None:
    """The stream that `with stream:` made current in this thread or asyncio task, or None."""

def require_gpu() -> None:
    """Raise LibraryError unless kernels run on a GPU."""

def stream(*, priority: int = 0) -> Stream:
    """Create a non-blocking stream on the current device.

    priority : lower numbers are more urgent; `bascule.current_device().stream_priorities` has the range.

    >>> import bascule
    >>> with bascule.stream() as stream:
    ...     bascule.device_array(3).stream == stream
    True
    """

def external_stream(handle: Any) -> Stream:
    """Borrow a stream of another library: an integer handle, or any object that names a stream. The object is kept alive; the stream lives only as long as its owner."""

def default_stream() -> Stream:
    """The stream of work that names no stream and is in no `with stream:`; see `bascule.config.default_stream`."""

def legacy_default_stream() -> Stream:
    """The legacy default stream (handle 1)."""

def per_thread_default_stream() -> Stream:
    """The calling thread's default stream (handle 2)."""

def event(*, timing: bool = True) -> Event:
    """Create an event on the current device."""

def synchronize() -> None:
    """Wait on the host until the current device has finished all work. Raises CudaError if any of it failed."""

def to_device(array: Any, *, stream: Any = None) -> DeviceArray:
    """Copy a host array to a new DeviceArray, in the order of `stream`.

    array : numpy.ndarray or anything numpy.asarray takes; a numpy.ma array keeps its mask. It may be changed when this returns, unless its
    memory is pinned: then once `stream` has reached the copy.
    stream : bound to the new array; None means the current stream, else the default stream.

    Raises ArgumentError for a dtype that no device has, and CudaError when there is no memory.

    >>> import numpy as np, bascule
    >>> bascule.to_device(np.arange(3)).shape
    (3,)
    """

def device_array(
    shape: int | Sequence[int], dtype: Any = "float32", *, order: str = "C", stream: Any = None
) -> DeviceArray:
    """Create a DeviceArray with undefined contents.

    shape : int or tuple of ints.
    dtype : numpy.dtype or anything that makes one.
    order : 'C' or 'F'. Raw pointers take C order only.
    stream : bound to the array; None means the current stream, else the default stream.

    >>> import bascule
    >>> bascule.device_array((2, 3), "f8").nbytes
    48
    """

def device_array_like(array: Any, *, stream: Any = None) -> DeviceArray:
    """Create a DeviceArray with undefined contents and the shape, dtype and order of another array.

    array : a device array, on whose device the new one is, or a host array or anything numpy.asarray takes.
    stream : as for `device_array`.

    >>> import numpy as np, bascule
    >>> bascule.device_array_like(np.zeros((2, 3), order="F")).strides
    (8, 16)
    """

def zeros(shape: int | Sequence[int], dtype: Any = "float32", *, order: str = "C", stream: Any = None) -> DeviceArray:
    """Create a DeviceArray of zeros, in the order of `stream`. Does not wait. Parameters as for `device_array`.

    >>> import bascule
    >>> bascule.zeros(3, "i4").copy_to_host()
    array([0, 0, 0], dtype=int32)
    """

def zeros_like(array: Any, *, stream: Any = None) -> DeviceArray:
    """Create a DeviceArray of zeros with the shape, dtype and order of another array. Parameters as for `device_array_like`.

    >>> import numpy as np, bascule
    >>> bascule.zeros_like(np.arange(2)).copy_to_host()
    array([0, 0])
    """

def ones(shape: int | Sequence[int], dtype: Any = "float32", *, order: str = "C", stream: Any = None) -> DeviceArray:
    """Create a DeviceArray of ones, in the order of `stream`. Does not wait. Parameters as for `device_array`.

    >>> import bascule
    >>> bascule.ones(2).copy_to_host()
    array([1., 1.], dtype=float32)
    """

def full(
    shape: int | Sequence[int], value: Any, dtype: Any = None, *, order: str = "C", stream: Any = None
) -> DeviceArray:
    """Create a DeviceArray with every element set to `value`, in the order of `stream`. Does not wait.

    shape, order, stream : as for `device_array`.
    value : a number, or anything that NumPy can assign to one element of this dtype.
    dtype : None means NumPy's dtype of the value: float64 for 1.5, int64 for 3.

    >>> import bascule
    >>> bascule.full(2, 1.5, "f4").copy_to_host()
    array([1.5, 1.5], dtype=float32)
    """

def pinned_array(
    shape: int | Sequence[int], dtype: Any = "float32", *, order: str = "C", stream: Any = None
) -> DeviceArray:
    """Create an array in pinned host memory, which kernels and NumPy access in place; contents are undefined.

    `numpy.asarray(x)` is a view, not a copy, and keeps the array alive. NumPy does not wait for the device: synchronise the stream that
    used the array first. Copies between it and the device run while the host continues. Parameters as for `device_array`.

    >>> import numpy as np, bascule
    >>> x = bascule.pinned_array(3, "i4")
    >>> np.asarray(x)[:] = [1, 2, 3]
    >>> x.copy_to_host()
    array([1, 2, 3], dtype=int32)
    """

def managed_array(
    shape: int | Sequence[int], dtype: Any = "float32", *, order: str = "C", stream: Any = None
) -> DeviceArray:
    """Create an array in managed memory, which migrates to the processor that uses it; contents are undefined.

    As with `pinned_array`, `numpy.asarray(x)` is a view; synchronise before the host accesses it. Where the device does not share managed
    memory while kernels run (Windows, WSL, old GPUs), `asarray` waits for all kernels, and so must you before each later access: any kernel
    that runs makes the host's access a crash. Parameters as for `device_array`.

    >>> import numpy as np, bascule
    >>> x = bascule.managed_array(2, "f8")
    >>> x.fill(0.5)
    >>> bascule.synchronize()
    >>> np.asarray(x)
    array([0.5, 0.5])
    """

def set_allocator(allocator: Any) -> Any:
    """Allocate the device memory of new arrays with `allocator`. Returns the previous allocator.

    allocator : one of
        an object with `allocate(nbytes, stream)`: cuda.core's MemoryResource, RMM's DeviceMemoryResource;
        an object with `malloc(nbytes)`: `cupy.cuda.MemoryPool()`, `cupy.get_default_memory_pool()`;
        a pair of functions `(allocate, deallocate)`: `allocate(nbytes, stream)` returns an address, `deallocate(address, nbytes,
        stream)` frees it; `stream` is the bascule.Stream that the array is bound to;
        None: the device's pool, `bascule.memory_pool()`.

    Memory is returned to the allocator that it came from, once no enqueued work can use it. Pinned and managed arrays always come from the
    driver. An exception of the allocator propagates to the call that creates the array. The setting holds for the process; any thread may
    change it.

    >>> import bascule
    >>> before = bascule.set_allocator(None)
    """

def get_allocator() -> Any:
    """The allocator of new arrays, or None for the device's pool."""

def memory_pool(device: Device | int | None = None) -> MemoryPool:
    """The pool that new arrays of `device` (None: the current device) take their memory from. It is empty where the driver has no
    pools for the device: then arrays come from `cuMemAlloc`.

    >>> import bascule
    >>> bascule.memory_pool().reserved_bytes >= bascule.memory_pool().used_bytes
    True
    """

def pointer_attributes(object: Any) -> PointerAttributes:
    """What the driver knows of an address, or of the first byte of an array.

    object : an integer address, or anything with `__cuda_array_interface__` or (in pinned memory) `__array_interface__`.

    Raises ValueError for memory that no device can use. Does not wait.

    >>> import bascule
    >>> bascule.pointer_attributes(bascule.pinned_array(4)).kind
    'pinned'
    """

def is_cuda_array(object: Any) -> bool:
    """Whether `object` has a `__cuda_array_interface__` that `as_cuda_array` would read.

    The attribute is read, because some libraries decide only then: AttributeError means no, and any other exception of the library
    propagates unchanged (PyTorch raises RuntimeError for a tensor that requires a gradient, with what to do about it). The contents of the
    descriptor are not checked. False for classes.

    >>> import bascule
    >>> bascule.is_cuda_array(bascule.device_array(4)), bascule.is_cuda_array([1, 2])
    (True, False)
    """

def as_cuda_array(object: Any, *, sync: bool = True) -> DeviceArray:
    """View any object with `__cuda_array_interface__` as a DeviceArray, without a copy; the object is kept alive.

    The producer's stream becomes the bound stream of the view: later operations are ordered with it on the device, and the host never
    waits (Numba waits here). With sync=False, or with `bascule.config.cuda_array_interface_sync` off, the producer's stream is ignored and
    the view has no bound stream.

    Raises ArgumentError for an invalid descriptor or memory that no device can use; the object's own exceptions propagate unchanged.

    >>> import bascule
    >>> x = bascule.device_array(4, "f4")
    >>> bascule.as_cuda_array(x).stream == x.stream
    True
    """

def from_cuda_array_interface(descriptor: Mapping[str, Any], owner: Any = None, *, sync: bool = True) -> DeviceArray:
    """View the memory that a `__cuda_array_interface__` dict describes, as `as_cuda_array` does. `owner` is kept alive; without one
    the caller must keep the memory alive.

    >>> import bascule
    >>> x = bascule.device_array(4, "f4")
    >>> bascule.from_cuda_array_interface(x.__cuda_array_interface__, owner=x).shape
    (4,)
    """

def from_dlpack(
    object: Any, *, device: Device | int | None = None, copy: bool | None = None, stream: Any = None
) -> DeviceArray:
    """View another library's array that has `__dlpack__`, or a DLPack capsule, as a DeviceArray, without a copy.

    The producer makes `stream` wait for its pending work, and the array is bound to `stream`. DLPack orders only this way: later work of the
    producer on its array does not wait for work here; `as_cuda_array` orders both ways. A capsule has no stream: its work was ordered when it
    was created. The array keeps the tensor alive.

    device : None, or the bascule.Device (or its number) that the array must be on.
    copy : True makes a copy; False raises where the producer can only give a copy; None copies only where the producer must.
    stream : bound to the array; None means the current stream, else the default stream.

    Raises ArgumentError for host memory and for objects that are not arrays; the producer's own exceptions propagate unchanged.
    """

class RawBytes:
    """The bytes of a struct that is passed by value."""
    def __bytes__(self) -> bytes: ...
    def __len__(self) -> int: ...

def struct(dtype: Any, name: str = "Record") -> str:
    """The CUDA C++ struct of a NumPy structured dtype.

    Its fields have the same offsets as in NumPy, which static_asserts in the text check. Put the text before the kernels that use it. Nested
    structures become structs of their own (`Record_position`). If NumPy's fields are not aligned as C++ requires, the struct is packed: its
    numbers are read and written as usual, but pointers and references to them are not allowed; a half or complex number that may be
    unaligned is a `bascule::unaligned<T>`, which converts to T and is assigned from T.

    Parameters
    ----------
    dtype : numpy.dtype with fields, or anything numpy.dtype takes
    name : str, the name of the struct

    Returns
    -------
    str

    Raises
    ------
    ArgumentError
        A field that C++ cannot have: an object or a string, overlapping fields, a name that is not an identifier.

    Examples
    --------
    >>> particle = np.dtype([("mass", "f4"), ("position", "f8", (3,))], align=True)
    >>> source = bascule.struct(particle, "Particle") + "__global__ void fall(Particle* p) { p->position[2] -= p->mass; }"
    >>> bascule.compile(source).fall[1, 1](bascule.to_device(np.zeros(1, particle)))
    """

def raw_bytes(buffer: Any) -> RawBytes:
    """Pass the bytes of a struct by value; their number is checked and nothing else. They are copied now."""

def raw_pointer(address: int) -> RawPointer:
    """Pass an integer device address for a pointer parameter; nothing about it is checked."""

def _make_module(
    text: str, name: str, first_line: int, directory: str, options: CompileOptions, name_expressions: Sequence[str]
) -> Module: ...
def _read_source(path: str) -> str: ...
def _module_recipe(module: Module) -> tuple[str, str, int, str, CompileOptions, tuple[str, ...]]: ...
def _exposes_variables(module: Module) -> bool: ...
def _is_current(module: Module) -> bool: ...
def _module_of(kernel: Kernel) -> Module: ...
def _kernel_reference(
    kernel: Kernel,
) -> tuple[str, list[str], list[tuple[str, str]], str, list[tuple[str, str]]]: ...
def _find_kernel(
    module: Module,
    name: str,
    positional: Sequence[str],
    named: Sequence[tuple[str, str]],
    expression: str,
    together: Sequence[tuple[str, str]],
) -> Kernel: ...
def _launcher_recipe(
    launcher: Launcher,
) -> tuple[Kernel, LaunchConfig | None, tuple[int, ...], int, Any, bool, bool, bool]: ...
def _set_default_stream(which: str) -> None: ...
def _forget_producers() -> None:
    """What was found for types is asked again: another one was registered."""

def _ask_libraries(ask: bool) -> None: ...
def _interface_sync() -> bool: ...
def _set_interface_sync(on: bool) -> None: ...
def _kernel_facts(kernel: Kernel) -> dict[str, Any]: ...
def _module_place(module: Module) -> tuple[str, int]: ...
def _launcher_facts(launcher: Launcher) -> dict[str, Any]: ...
def _bound_facts(bound: BoundLaunch) -> dict[str, Any]: ...
def _array_facts(array: DeviceArray, most: int) -> dict[str, str]: ...
def _driver_info() -> dict[str, Any]: ...
def _prelude() -> str: ...
def _nvrtc_info() -> dict[str, Any]: ...
def _forget_toolkit() -> None: ...
def _toolkit_libraries() -> list[str]: ...
def _public(function: _F) -> _F: ...
def _public_with(results: Mapping[str, object]) -> Callable[[_F], _F]: ...
def _place_of_keyword(kernel: str, keyword: str) -> str: ...
def _cache_statistics() -> CacheStatistics: ...
def _cache_clear() -> None: ...
def _cache_directory() -> str: ...
def _cache_limit() -> int: ...
def _set_cache_limit(bytes: int) -> None: ...
def _cache_list() -> tuple[str | None, list[tuple[str, int, int, str, tuple[str, ...], str, str]]]: ...
def _cache_bytes(name: str) -> bytes | None: ...
def _cache_problem(bytes: bytes) -> str: ...
def _cache_adopt(bytes: bytes) -> tuple[bool, str | None]: ...
def _cache_sweep() -> tuple[int, int, str | None]: ...
def _cache_remove_all() -> tuple[int, int, str | None]: ...
def _cache_is_disabled() -> bool: ...

class _CacheDisabled: ...

class _SignatureOfInstance:
    def __get__(self, instance: object, owner: type | None = None) -> Any: ...

class _DocumentationOfInstance(str): ...

def _can_be_shared(module: Module) -> bool: ...
def _accept_newer_interface(accept: bool) -> None: ...
def _check_memory(on: bool) -> None: ...
def _parse(descriptor: Any, times: int = 1) -> str:
    """For tests and benchmarks: parses and checks a descriptor as a launch does, or, not `plainly`, by all the rules at once; says what it is."""

def _look_for_races(on: bool) -> bool: ...
def _driver_is_loaded() -> bool: ...
def _looks_for_races() -> bool: ...
def _take_races() -> list[str]: ...
def _raise_races(races: list[str]) -> None: ...
def _finish_devices() -> None: ...
def _reset_devices() -> None: ...
def _is_context_lost() -> bool: ...
def _end_program(milliseconds: int) -> None: ...
def _race_statistics() -> dict[str, int]: ...
def _trace_start() -> None: ...
def _trace_length() -> int: ...
def _trace_stop() -> list[tuple[str, int, int, int, str, int]]: ...
def _driver_calls(function: str) -> int: ...
def _owners_held() -> int: ...
def _synchronise_launches(on: bool) -> bool: ...
def _enter_trace(self: _T) -> _T: ...
def _exit_trace(
    self: object, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
) -> None: ...
def _emit_ranges(push: Callable[[str], object], pop: Callable[[], object]) -> None: ...
def _stop_ranges() -> None: ...
def _add_launch_hook(
    before: Callable[[Any], object] | None, after: Callable[[Any], object] | None, make_record: Callable[..., object]
) -> int: ...
def _remove_launch_hook(number: int) -> None: ...
