"""Faults in a notebook name its cells as compile errors do: In[3]."""

from __future__ import annotations

import pytest

from .fault_reports import report_of

pytestmark = pytest.mark.usefixtures("emulated")

# Each cell has a file name, whose lines are only in linecache, as in ipykernel.
NOTEBOOK = r'''
import linecache, types
names = {}
def format_code_name(filename):
    return ("Cell", names[filename]) if filename in names else None
shell = types.SimpleNamespace(compile=types.SimpleNamespace(format_code_name=format_code_name))
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell)
variables = {"bascule": bascule, "np": np}
def run_cell(number, text):
    filename = f"ipykernel_1/{number}.py"
    names[filename] = f"In[{number}]"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), variables)
run_cell(3, """k = bascule.compile(r\'\'\'
__global__ void k(float* p, int n) {
    p[threadIdx.x + n] = 1;
}\'\'\').k
""")
run_cell(4, "\nx = bascule.to_device(np.zeros(32, 'f4'))\n")
run_cell(5, "k[1, 32](x, 0)\nk[1, 32](x, 32)\n")
report_of(bascule.synchronize)
'''


def test_the_kernel_the_array_and_the_launch_are_named_by_their_cells(tmp_path):
    report = report_of(tmp_path, NOTEBOOK)
    assert report.headline.endswith(" at In[3]:3: p[threadIdx.x + n] = 1;")
    assert "the 128-byte allocation made at In[4]:2\n" in report.text
    assert "launched at In[5]:2: k[1, 32](x, 32)." in report.text
    assert "ipykernel" not in report.text
