"""Profiles as Python objects: displays, JSON, limits for tests, errors."""

from __future__ import annotations

import html
import json
import re

import pytest
from child_process import printed_by, run_python
from driver.place import environment_of

import bascule
from bascule.emulated import Counts, assert_profile, profile

from .conftest import TEXT, line_of

pytestmark = pytest.mark.usefixtures("emulated")

PROGRAM = f"""
import bascule
kernels = bascule.compile(r'''{TEXT}''')
x, y = bascule.zeros((64, 64), "f4"), bascule.zeros((64, 64), "f4")
to = bascule.zeros(32, "i4")
streams = [bascule.stream() for _ in range(3)]
bascule.synchronize()
with bascule.emulated.profile() as taken:
    for stream in streams:
        kernels.transpose.instantiate(0)[(2, 2), (32, 8), stream].options(sync=False)(y, x, 64)
        kernels.count[4, 96, stream](to, 3)
        kernels.branch[1, 64, stream](y[0], y[1], 1)
print(taken.to_json())
"""


@pytest.fixture
def transposed(kernels) -> bascule.emulated.Profile:
    with profile() as taken:
        kernels.transpose.instantiate(0)[(2, 2), (32, 8)](
            bascule.zeros((64, 64), "f4"), bascule.zeros((64, 64), "f4"), 64
        )
    return taken


def test_every_schedule_gives_the_same_counts(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    settings = [{"BASCULE_EMULATED_SCHEDULE": each} for each in ("eager", "lazy", "threads", "random:7")]
    settings += [{"BASCULE_EMULATED_WORKERS": "3"}]
    first, *others = (printed_by(program, **{"BASCULE_EMULATED_CHECKS": "memory", **each}) for each in settings)
    counted = json.loads(first)
    assert counted["transpose<0>"]["bank_conflicts"] == 3 * 4 * 32 * 31
    assert counted["count"]["launches"] == 3
    for other in others:
        assert json.loads(other) == counted


def test_the_text_has_the_kernel_the_source_and_a_warning(transposed):
    text = str(transposed)
    line = line_of_columns(transposed)
    assert "They predict no times." in text
    assert re.search(r"transpose<0>\s+1\s", text)
    assert re.search(rf"3,968 +{line.line}  {{8}}out.*// columns", text)
    assert line.file in text
    assert repr(transposed) == "<bascule.emulated.Profile: 1 kernels, 1 launches>"


def line_of_columns(taken: bascule.emulated.Profile) -> bascule.emulated.LineProfile:
    return max(taken.kernels["transpose<0>"].lines, key=lambda line: line.bank_conflicts)


def test_notebooks_show_the_same_as_html(transposed):
    markup = transposed._repr_html_()
    written = html.unescape(re.sub(r"<[^<>]*>", "", markup))
    for line in transposed.kernels["transpose<0>"].lines:
        assert line.text in written
    assert "<script" not in markup
    assert "transpose&lt;0&gt;" in markup


def test_json_has_every_counter(transposed):
    (kernel,) = json.loads(transposed.to_json()).values()
    names = set(Counts.__dataclass_fields__)
    assert kernel.keys() == names | {"name", "launches", "lines"}
    for line in kernel["lines"]:
        assert line.keys() == names | {"file", "line", "text", "caller"}
    for name in names:
        assert kernel[name] == sum(line[name] for line in kernel["lines"])


def test_limits_that_hold(kernels):
    x, y = bascule.zeros((64, 64), "f4"), bascule.zeros((64, 64), "f4")
    padded = kernels.transpose.instantiate(1)
    for kernel in (padded, kernels.transpose, "transpose", "transpose<1>"):
        with assert_profile(kernel, bank_conflicts=0, sectors_per_request=4, active_lanes=32) as taken:
            padded[(2, 2), (32, 8)](y, x, 64)
        assert taken.kernels["transpose<1>"].bank_conflicts == 0


def test_an_exceeded_limit_names_the_worst_line(kernels):
    x, y = bascule.zeros((64, 64), "f4"), bascule.zeros((64, 64), "f4")
    with pytest.raises(AssertionError) as caught, assert_profile(kernels.transpose, bank_conflicts=8) as taken:
        kernels.transpose.instantiate(0)[(2, 2), (32, 8)](y, x, 64)
    line = line_of_columns(taken)
    assert str(caught.value) == (
        "kernel 'transpose<0>': bank_conflicts is 3968, and must be at most 8\n"
        f"  the worst line has {line.bank_conflicts}, {line.place}: {line.text.strip()}"
    )


def test_active_lanes_has_a_least_number(kernels):
    y, z = bascule.zeros(64, "f4"), bascule.zeros(64, "f4")
    with (
        pytest.raises(AssertionError, match=r"active_lanes is .*at least 32\n  the worst line has 16, "),
        assert_profile(kernels.branch, active_lanes=32),
    ):
        kernels.branch[1, 64](y, z, 1)


def test_a_kernel_that_is_not_launched_does_not_pass(kernels):
    said = "'count' was not launched in the block. Launched kernels: none"
    with pytest.raises(AssertionError, match=said), assert_profile(kernels.count, bank_conflicts=0):
        pass


def test_unknown_counters_are_errors_that_list_the_names(kernels):
    names = "no counter 'conflicts': choose from instructions, .*, sectors_per"
    with pytest.raises(bascule.ArgumentValueError, match=names), assert_profile(kernels.count, conflicts=0):
        pass
    with pytest.raises(bascule.ArgumentValueError, match="no counter has a limit"), assert_profile(kernels.count):
        pass


def test_an_error_of_the_block_ends_the_profile(kernels):
    with pytest.raises(ZeroDivisionError), assert_profile(kernels.count, bank_conflicts=0):
        raise ZeroDivisionError
    with profile() as taken:
        with pytest.raises(bascule.Error, match="cannot be nested"), profile():
            pass
        kernels.count[1, 32](bascule.zeros(32, "i4"), 1)
    assert line_of(taken, "count").atomic_conflicts == 31


def test_a_launch_that_began_before_the_profile_is_not_counted():
    printed = printed_by(
        "-c",
        """
import bascule, numpy
kernels = bascule.compile('''
__global__ void hold(volatile int* flags) {
    flags[0] = 1;
    while (flags[1] == 0) {}
}
__global__ void k() {}
''')
hold = kernels.hold.prepare()
flags = bascule.pinned_array(2, "i4")
seen = numpy.asarray(flags)
seen[:] = 0
stream = bascule.stream()
bascule._bascule._profile(True)
hold[1, 1, stream].options(sync=False)(flags)
while seen[0] == 0:
    pass
bascule._bascule._profile(True)
seen[1] = 1
stream.synchronize()
kernels.k[1, 1]()
bascule.synchronize()
print(bascule._bascule._profile_so_far())
""",
        BASCULE_EMULATED_SCHEDULE="threads",
        BASCULE_EMULATED_CHECKS="memory",
    )
    assert [each["kernel"] for each in json.loads(printed)] == ["k"]


def test_a_gpu_takes_no_profile(tmp_path):
    printed = printed_by(
        "-c",
        """
import bascule
try:
    with bascule.emulated.profile():
        pass
except bascule.LibraryError as error:
    print(error)
""",
        **environment_of(tmp_path),
    )
    assert printed.startswith("kernels run on a GPU, and only the emulated device")


def test_a_fault_is_raised_and_the_next_profile_works():
    done = run_python(
        "-c",
        """
import bascule
kernel = bascule.compile("__global__ void k(int* p, int i) { p[i] = 1; }").k
try:
    with bascule.emulated.profile():
        kernel[1, 1](bascule.zeros(8, "i4"), 1 << 20)
except bascule.CudaError as error:
    print(str(error).split(":")[0])
bascule.emulated.reset()
with bascule.emulated.profile() as taken:
    kernel[1, 1](bascule.zeros(8, "i4"), 7)
print(taken.kernels["k"].global_stores)
""",
    )
    assert done.stdout.split("\n")[:2] == ["illegal address", "1"], done.stderr
