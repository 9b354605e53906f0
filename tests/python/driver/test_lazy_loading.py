"""Nothing is loaded during a capture, with lazy and with eager loading, in other libraries' captures too."""

from __future__ import annotations

import pytest

from .place import prints

LAZY = {"BASCULE_EMULATED_LAZY_LOADING": "1"}
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2

CAPTURES = """
source = '''
__device__ float table[32];
__global__ void shift(float* x) { x[threadIdx.x] += 1; }
__global__ void large(float* x) {
    extern __shared__ float tile[];
    tile[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = 2 * tile[threadIdx.x];
}
__global__ void look_up(float* x) { x[threadIdx.x] += table[threadIdx.x]; }
template <class T> __global__ void negate(T* x) { x[threadIdx.x] = -x[threadIdx.x]; }'''
module = bascule.compile(source)
x = bascule.to_device(np.ones(32, "f4"))
other = ctypes.c_void_p()
assert driver.cuStreamCreate(ctypes.byref(other), 1) == 0

def begin(mode):
    assert driver.cuStreamBeginCapture_v2(other, mode) == 0

def end():
    '''What the driver returned, and how many operations were captured.'''
    graph, count = ctypes.c_void_p(), ctypes.c_size_t()
    code = driver.cuStreamEndCapture(other, ctypes.byref(graph))
    if code == 0:
        assert driver.cuGraphGetNodes(graph, None, ctypes.byref(count)) == 0
    return code, count.value

def loads():
    return driver.bascule_emulated_call_count(b"cuFuncLoad")
"""


def outcome(program: str, *, uses: tuple[int, ...] = (0,), **changes: str) -> str:
    return prints(CAPTURES + program, uses=uses, **{**LAZY, **changes})


@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL, RELAXED])
def test_a_prepared_kernel_is_launched_in_any_capture(mode):
    printed = outcome(f"""
module.shift.prepare()
module.large.prepare()
module.negate.prepare(x)
view = bascule.as_cuda_array(x, sync=False)
bascule.synchronize()
begin({mode})
module.shift[1, 32, other.value](view)
module.large[1, 32, other.value, 100_000](view)
module.negate[1, 32, other.value](view)
print(end())
""")
    assert printed == "(0, 3)\n"


QUESTIONS = {
    "loading": "module.shift.prepare()",
    "a first launch": "module.shift[1, 32](x)",
    "attributes": "module.look_up.attributes",
    "occupancy": "module.look_up.occupancy(128)",
    "a variable": "module.look_up.get_global('table')",
    "a block size": "module.look_up.forall(32)(x)",
    "a cooperative launch": "module.look_up[bascule.LaunchConfig(1, 32, cooperative=True)](x)",
    "a template": "module.negate[1, 32](x)",
    "the element-wise kernels": "x.astype('f8')",
}


@pytest.mark.parametrize("prepared", ["", "module.look_up.prepare()"], ids=["unprepared", "prepared"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_what_one_thread_loads_and_asks_breaks_no_capture_of_another(question, prepared):
    """A global capture forbids unsafe calls in every thread, and other threads do not know of it."""
    printed = outcome(f"""
{prepared}
mine = bascule.stream()
x = bascule.to_device(np.ones(32, "f4"), stream=mine)
mine.synchronize()
begin({GLOBAL})
failures = []
def work():
    try:
        with mine:
            {QUESTIONS[question]}
    except BaseException as error:
        failures.append(error)
thread = threading.Thread(target=work)
thread.start()
thread.join()
print(end(), failures)
""")
    assert printed == "(0, 0) []\n"


@pytest.mark.parametrize("question", ["loading", "a first launch", "a variable", "a template"])
def test_in_the_thread_that_captures_a_graph_what_is_not_loaded_is_refused_and_the_capture_goes_on(question):
    printed = outcome(f"""
module.large.prepare()
graph = bascule.Graph()
with graph:
    try:
        {QUESTIONS[question]}
    except bascule.CudaError as error:
        print(error.code, "prepare" in str(error), str(error).endswith("The capture goes on."))
    module.large[1, 32, None, 128](x)
print(len(graph))
""")
    assert printed == "900 True True\n1\n"


def test_preparing_a_kernel_loads_it_once_for_each_device():
    printed = outcome(
        """
driver.bascule_emulated_call_count.restype = ctypes.c_uint64
for device in (0, 1):
    with bascule.device(device):
        module.shift.prepare()
        module.shift.prepare()
        print(loads())
""",
        uses=(0, 1),
    )
    assert printed == "1\n2\n"


@pytest.mark.parametrize(("lazy", "mode"), [("1", 2), ("0", 1)])
def test_the_emulated_driver_loads_a_kernel_in_a_capture_as_an_h100s_does(lazy, mode):
    """CU_MODULE_EAGER_LOADING is 1, CU_MODULE_LAZY_LOADING 2; neither refuses the launch."""
    printed = outcome(
        f"""
library, kernel, mode = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
assert driver.cuModuleGetLoadingMode(ctypes.byref(mode)) == 0
ptx = module.shift.ptx.encode()
assert driver.cuLibraryLoadData(ctypes.byref(library), ptx, None, None, 0, None, None, 0) == 0
lines = ptx.decode().splitlines()
name = next(line.split("(")[0].split()[-1] for line in lines if ".entry" in line and "shift" in line)
assert driver.cuLibraryGetKernel(ctypes.byref(kernel), library, name.encode()) == 0
pointer = ctypes.c_uint64(x.__cuda_array_interface__["data"][0])
arguments = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
bascule.synchronize()
begin({GLOBAL})
print(mode.value, driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, other, arguments, None), end())
""",
        BASCULE_EMULATED_LAZY_LOADING=lazy,
    )
    assert printed == f"{mode} 0 (0, 1)\n"
