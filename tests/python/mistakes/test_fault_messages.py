"""The first line of a fault says what the kernel did and where; only the launch that caused it is named."""

from __future__ import annotations

import re

import pytest

from .fault_reports import report_of

pytestmark = pytest.mark.usefixtures("emulated")

INTERNAL_NAME = re.compile(r"/bascule/[0-9a-f]+\.cu")  # a program's name inside NVRTC

PAST = '''
module = bascule.compile("""
__device__ float at(const float* p, int i) {
    return p[i];  // access
}
__global__ void past(float* p, int n) {
    p[threadIdx.x + n] = 1;  // past
}
__global__ void through(float* p, int n) {
    p[0] = at(p, n);  // call
}
__global__ void checked(const float* p) {
    assert(p[0] > 1);  // assertion
}
""")
x = bascule.to_device(np.zeros(32, "f4"))
'''


def test_the_first_line_says_what_the_kernel_did_and_where(tmp_path):
    report = report_of(tmp_path, PAST + "module.past[1, 32](x, 32)\nreport_of(bascule.synchronize)")
    place = report.place("// past")
    assert report.headline == f"illegal address: kernel 'past' wrote 4 bytes of global memory at {place}"


def test_the_call_that_noticed_the_fault_comes_last_whichever_it_is(tmp_path):
    program = "module.past[1, 32](x, 32)\nreport_of(bascule.synchronize)\nprint('--')\nreport_of(x.copy)"
    first, later = report_of(tmp_path, PAST + program).text.split("--\n")
    assert first.splitlines()[:-1] == later.splitlines()[:-1]
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700), noticed while waiting for the device. " in first.splitlines()[-1]
    assert "noticed while waiting" not in later
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700), noticed while " in later.splitlines()[-1]
    assert "bascule.emulated.reset()" in later


@pytest.mark.parametrize("schedule", ["eager", "lazy", "threads"])
def test_of_several_launches_of_a_kernel_the_one_that_faulted_is_named(tmp_path, schedule):
    program = """
def launch():
    module.past[1, 32](x, 0)  # good
    module.past[1, 32](x, 0)  # good too
    module.past[1, 32](x, 32)  # bad
    module.past[1, 32](x, 0)  # after it
    bascule.synchronize()
report_of(launch)
"""
    report = report_of(tmp_path, PAST + program, BASCULE_EMULATED_SCHEDULE=schedule)
    assert f"It was kernel 'past' on the legacy default stream, launched at {report.place('# bad')}." in report.text
    assert "most likely" not in report.text
    assert report.text.count("launched at") == 1


def test_a_launch_of_a_graph_is_named_by_the_line_that_was_captured(tmp_path):
    program = """
module.past.prepare()
with bascule.Graph() as graph:
    module.past[1, 32](x, 0)  # good
    module.past[1, 32](x, 32)  # bad
graph.launch()
report_of(bascule.synchronize)
"""
    report = report_of(tmp_path, PAST + program)
    assert f"launched at {report.place('# bad')}." in report.text
    assert "# good" not in report.text


def test_inlined_code_is_named_with_the_line_that_calls_it(tmp_path):
    report = report_of(tmp_path, PAST + "module.through[1, 1](x, 32)\nreport_of(bascule.synchronize)")
    assert report.headline.endswith(f" at {report.place('// access')}")
    assert f"\n  called from {report.place('// call')}\n" in report.text


def test_a_failed_assertion_is_at_its_line_of_the_string(tmp_path):
    report = report_of(tmp_path, PAST + "module.checked[1, 32](x)\nreport_of(bascule.synchronize)")
    assert report.headline == f"failed assertion: kernel 'checked' stopped at {report.place('// assertion')}"
    assert "assertion `p[0] > 1` failed in " in report.text
    assert not INTERNAL_NAME.search(report.text)


def test_a_failed_assertion_is_at_its_line_of_a_file(tmp_path):
    source = tmp_path / "kernels.cu"
    source.write_text("\n__global__ void checked(int n) {\n    assert(n == 3);\n}\n")
    program = f"bascule.compile(file={str(source)!r}).checked[1, 1](4)\nreport_of(bascule.synchronize)"
    report = report_of(tmp_path, program)
    assert report.headline == f"failed assertion: kernel 'checked' stopped at {source}:3: assert(n == 3);"
    assert not INTERNAL_NAME.search(report.text)


def test_a_failed_copy_is_nobodys_launch(tmp_path):
    program = """
import ctypes
from pathlib import Path
driver = ctypes.CDLL(str(Path(bascule.__file__).parent / "libbascule_emulator.so"))
made, first, other = ctypes.c_uint64(), bascule.stream(), bascule.stream()
module.past[1, 32](x, 0)
assert driver.cuMemAllocAsync(ctypes.byref(made), ctypes.c_size_t(128), ctypes.c_void_p(first.handle)) == 0
assert driver.cuMemsetD8Async(made, 0, ctypes.c_size_t(128), ctypes.c_void_p(other.handle)) == 0
report_of(other.synchronize)
"""
    report = report_of(tmp_path, PAST + program, BASCULE_EMULATED_SCHEDULE="lazy")
    assert "nothing orders before this" in report.headline
    assert "It was" not in report.text


NONE = '''
module = bascule.compile("""
__global__ void k(float* out, const float* x, int n) { out[0] = x[n]; }
template <class T> __global__ void t(T* out, const T* x) { out[0] = x[1]; }""")
x = bascule.zeros(3, "f4")
'''


@pytest.mark.parametrize(
    ("call", "kernel"),
    [
        ("module.k[1, 1](x, x.fill(0), 2)", "k"),
        ("module.t[1, 1](x, None)", "t<float>"),
        ("module.k[1, 1].bind(x, None, 2)()", "k"),
    ],
)
def test_an_argument_that_was_none_is_named(tmp_path, call, kernel):
    report = report_of(tmp_path, NONE + f"{call}\nreport_of(bascule.synchronize)")
    assert f"Argument 2 'x' of a launch of '{kernel}' was None, which is a null pointer" in report.text


LATER_FAULTS = {
    "after a launch that ended": "launch(x, None, 0)\n    bascule.synchronize()\n    launch(x, x, far)",
    "on another line": "module.given[1, 1](x, None, 0)\n    launch(x, x, far)",
    "many launches later": "launch(x, None, 0)\n    for i in range(20): launch(x, x, 0 if i < 19 else far)",
}


@pytest.mark.parametrize("schedule", ["eager", "lazy", "threads"])
@pytest.mark.parametrize("launches", LATER_FAULTS.values(), ids=LATER_FAULTS)
def test_a_fault_of_another_launch_of_the_kernel_does_not_speak_of_none(tmp_path, launches, schedule):
    program = f'''
module = bascule.compile("""
__global__ void given(float* out, const float* x, int n) {{ if (x) out[0] = x[n]; }}""")
x, far = bascule.zeros(3, "f4"), 1 << 20
def launch(*arguments):
    module.given[1, 1](*arguments)
def work():
    {launches}
    bascule.synchronize()
report_of(work)
'''
    report = report_of(tmp_path, program, BASCULE_EMULATED_SCHEDULE=schedule)
    assert "kernel 'given'" in report.text
    assert "None" not in report.text


def test_a_fault_of_another_kernel_does_not_speak_of_none(tmp_path):
    program = (
        "module.t[1, 1](x, None) if False else None\nmodule.k[1, 1](x, x, 1 << 20)\nreport_of(bascule.synchronize)"
    )
    assert "None" not in report_of(tmp_path, NONE + program).text
