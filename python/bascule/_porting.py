"""What names of CuPy, PyCUDA, Numba, PyTorch and NumPy are called here. Imported when one is missing."""

# Names, and a sentence without its full stop.
_SENTENCES = {
    "RawKernel RawModule SourceModule": "bascule.compile(text) compiles CUDA C++, and its kernels are attributes: "
    "bascule.compile(text).NAME",
    "ElementwiseKernel ReductionKernel vectorize": "write a kernel in CUDA C++ with a loop: "
    "for (auto i : bascule::grid_stride(n)) y[i] = ...",
    "jit": "kernels are CUDA C++: @bascule.kernel(text) or bascule.compile(text)",
    "grid": "in CUDA C++ it is blockIdx.x * blockDim.x + threadIdx.x",
    "array from_numpy tensor to_gpu": "bascule.to_device(x) copies an array to the device",
    "asarray": "bascule.to_device(x) copies an array to the device; bascule.as_cuda_array(x) views one that lies there",
    "asnumpy to_host copy_to_host": "x.copy_to_host() copies an array to the host",
    "arange linspace eye random rand meshgrid": "make it with NumPy and copy it: bascule.to_device(np.{name}(...))",
    "empty": "bascule.device_array(shape, dtype) is an array whose elements are not set",
    "empty_like": "bascule.device_array_like(x) is an array whose elements are not set",
    "ones_like": "bascule.full(x.shape, 1, x.dtype)",
    "full_like": "bascule.full(x.shape, value, x.dtype)",
    "mem_alloc malloc": 'bascule.device_array(nbytes, "u1") allocates bytes',
    "select_device set_device": "`with bascule.device(1):` makes it the current device",
    "get_device": "bascule.current_device()",
    "launch": "kernel[grid, block](x, ...) or kernel[grid, block, stream](x, ...) launches",
}
HINTS = {name: sentence.format(name=name) for names, sentence in _SENTENCES.items() for name in names.split()}
