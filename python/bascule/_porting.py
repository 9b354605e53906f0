"""Hints for names of CuPy, PyCUDA, Numba, PyTorch and NumPy. Imported when `bascule` has no such attribute."""

# Maps names to a sentence without its full stop.
_SENTENCES = {
    "RawKernel RawModule SourceModule": "bascule.compile(text) compiles CUDA C++, and its kernels are attributes: "
    "bascule.compile(text).NAME",
    "ElementwiseKernel ReductionKernel vectorize": "write a kernel in CUDA C++ with a loop: "
    "for (auto i : bascule::grid_stride(n)) y[i] = ...",
    "module_from_file module_from_buffer": "bascule.load_module(path_or_bytes) loads PTX and cubins",
    "Linker DynamicModule": "bascule.link([text, other, ...]) makes one module of several texts",
    "jit": "kernels are CUDA C++: @bascule.kernel(text) or bascule.compile(text)",
    "grid": "in CUDA C++ it is blockIdx.x * blockDim.x + threadIdx.x",
    "array from_numpy tensor to_gpu": "bascule.to_device(x) copies an array to the device",
    "asarray": "bascule.to_device(x) copies an array to the device; bascule.as_cuda_array(x) views one that lies there",
    "asnumpy to_host copy_to_host": "x.copy_to_host() copies an array to the host",
    "random rand randn": "make them with NumPy and copy them: "
    "bascule.to_device(np.random.default_rng().random(n, dtype=np.float32))",
    "sum prod mean dot matmul sqrt exp maximum minimum where concatenate stack sort argmax cumsum": "arrays have no "
    "arithmetic here: np.{name}(x.copy_to_host(), ...), or write a kernel",
    "arange linspace eye meshgrid": "make it with NumPy and copy it: bascule.to_device(np.{name}(...))",
    "empty": "bascule.device_array(shape, dtype) is an array whose elements are not set",
    "empty_like": "bascule.device_array_like(x) is an array whose elements are not set",
    "as_tensor": "bascule.as_cuda_array(x) views an array that lies on a device",
    "get_array_module": "bascule.is_cuda_array(x) tells whether an array lies on a device",
    "ones_like": "bascule.full(x.shape, 1, x.dtype)",
    "full_like": "bascule.full(x.shape, value, x.dtype)",
    "mem_alloc malloc": 'bascule.device_array(nbytes, "u1") allocates bytes',
    "memcpy_htod": "x[...] = host, or x.copy_from_host(host)",
    "memcpy_dtoh": "x.copy_to_host(), or x.copy_to_host(host)",
    "memcpy_dtod": "y[...] = x",
    "In Out InOut": "a launch takes arrays on the device: bascule.to_device(x) before, x.copy_to_host() after",
    "mapped_array": "bascule.pinned_array(shape, dtype) is memory of the host that kernels can read",
    "free close": "memory is freed when nothing refers to an array: del x",
    "syncthreads": "in CUDA C++ it is __syncthreads()",
    "gridsize": "in CUDA C++ it is gridDim.x * blockDim.x",
    "shared": "in CUDA C++ it is `__shared__ float tile[256];`",
    "threadIdx blockIdx blockDim gridDim": "it is a name of CUDA C++, inside the kernel's text",
    "is_available detect gpus": "bascule.device_count() and bascule.devices(); `bascule info` in a terminal",
    "Program": "bascule.compile(text)",
    "ProgramOptions": "bascule.CompileOptions",
    "cuda": "the names of numba.cuda are Bascule's own: bascule.to_device, bascule.stream, ...",
    "TextureObject TextureReference ResourceDescriptor TextureDescriptor matrix_to_array": "bascule.texture(array, "
    'filter="linear", ...) makes a texture, bascule.cuda_array(x) a CUDA array',
    "SurfaceObject": "bascule.surface(array) makes a surface of a bascule.CudaArray",
    "select_device set_device": "`with bascule.device(1):` makes it the current device",
    "get_device": "bascule.current_device()",
    "sync": "bascule.synchronize() waits for the device, stream.synchronize() for a stream",
    "cdiv": "(n + block - 1) // block; kernel.forall(n)(...) computes the grid itself",
    "next_power_of_2": "1 << (n - 1).bit_length()",
    "autotune": "kernel.best_block() chooses a block, kernel.forall(n)(...) grid and block; bascule.benchmark measures",
    "memory_info mem_get_info": "bascule.current_device().free_memory; bascule.memory_pool() tells used_bytes",
    "launch": "kernel[grid, block](x, ...) or kernel[grid, block, stream](x, ...) launches",
}
# Maps a class to its attributes, each with a sentence.
_ATTRIBUTES = {
    "Stream": {
        "sync": "stream.synchronize() waits for it",
        "ptr": "stream.handle",
        "use": "`with stream:` makes it the current stream",
    },
    "Device": {
        "properties": "device.attributes",
        "memory_info": "device.free_memory and device.total_memory",
        "sync": "`with device: bascule.synchronize()` waits for it",
        "synchronize": "`with device: bascule.synchronize()` waits for it",
        "id": "device.ordinal",
        "use": "`with device:` makes it the current device",
    },
}


def attribute_error(self: object, name: str) -> AttributeError:
    """Return the error for a missing attribute of an object, with what to use instead."""
    kind = type(self).__name__
    hint = _ATTRIBUTES.get(kind, {}).get(name, "")
    return AttributeError(
        f"'bascule.{kind}' object has no attribute '{name}'{': ' + hint + '.' if hint else ''}", name=name, obj=self
    )


HINTS = {name: sentence.format(name=name) for names, sentence in _SENTENCES.items() for name in names.split()}
