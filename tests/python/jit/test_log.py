"""Messages of the loggers "bascule.cache" and "bascule.jit": what was compiled, and why it was not found."""

from __future__ import annotations

import logging
import re
import threading

import pytest
from child_process import run_python

import bascule


@pytest.fixture
def text(request):
    return f"__global__ void k(int* p) {{ *p = 1; }} // {request.node.name}\n"


@pytest.fixture
def said(caplog):
    """The messages of the cache since the last call."""
    caplog.set_level(logging.INFO, logger="bascule")

    def messages():
        found = [record.getMessage() for record in caplog.records if record.name == "bascule.cache"]
        caplog.clear()
        return found

    return messages


def compiled(text, **options):
    return bascule.compile(text, options=bascule.CompileOptions(**options))


def test_a_new_text_is_said_to_be_new(said, text):
    compiled(text)
    (message,) = said()
    assert message.startswith(f"k of <string at {__file__}:")
    assert "compiled in " in message
    assert "because no program of this text is on disk [key " in message


def test_a_program_from_disk_says_so(said, text):
    compiled(text)
    bascule.cache.clear()
    said()
    compiled(text)
    (message,) = said()
    assert ": from disk [key " in message


def test_hits_in_memory_are_for_debugging(caplog, text):
    caplog.set_level(logging.DEBUG, logger="bascule")
    compiled(text)
    caplog.clear()
    compiled(text)
    (record,) = [record for record in caplog.records if record.name == "bascule.cache"]
    assert (record.levelno, ": from memory" in record.getMessage()) == (logging.DEBUG, True)


@pytest.mark.parametrize(
    ("before", "now", "difference"),
    [
        ({"defines": {"A": 1}}, {"defines": {"A": 2}}, "options -DA=1, now -DA=2"),
        ({"std": "c++17"}, {"std": "c++20"}, "options -std=c++17, now -std=c++20"),
        ({}, {"fast_math": True}, "options none, now -use_fast_math"),
        ({"arch": "compute_80"}, {"arch": "compute_90"}, "architecture compute_80, now compute_90"),
        ({"headers": {"a.h": "1"}}, {"headers": {"a.h": "2"}}, "other texts in the option `headers`"),
    ],
    ids=["define", "standard", "flag", "architecture", "headers"],
)
def test_what_differs_from_the_nearest_program_is_named(said, text, before, now, difference):
    compiled(text, **before)
    said()
    compiled(text, **now)
    (message,) = said()
    assert f"because the nearest program on disk has the same text and {difference} [key" in message


def test_another_instance_is_named(said):
    module = bascule.compile("template <class T> __global__ void fill(T* p) {} // for the log")
    module.fill.instantiate("float").prepare()
    said()
    module.fill.instantiate("double").prepare()
    (message,) = said()
    assert "instances fill<float>, now fill<double>" in message


def test_the_header_that_changed_is_named(said, tmp_path):
    header = tmp_path / "value.h"
    header.write_text("#define VALUE 1\n")
    text = f'#include "value.h"\n__global__ void k(int* p) {{ *p = VALUE; }} // {tmp_path}\n'
    compiled(text, include_paths=[str(tmp_path)])
    said()
    header.write_text("#define VALUE 12\n")
    compiled(text, include_paths=[str(tmp_path)])
    (message,) = said()
    assert f"because the header {header} has changed [key" in message
    header.unlink()
    (tmp_path / "value.h").mkdir()
    with pytest.raises(bascule.CompileError):
        compiled(text, include_paths=[str(tmp_path)])


def test_a_header_that_hides_another_is_named(said, tmp_path):
    (first, second) = (tmp_path / "first", tmp_path / "second")
    first.mkdir()
    second.mkdir()
    (second / "value.h").write_text("#define VALUE 1\n")
    text = f'#include "value.h"\n__global__ void k(int* p) {{ *p = VALUE; }} // {tmp_path}\n'
    compiled(text, include_paths=[str(first), str(second)])
    said()
    (first / "value.h").write_text("#define VALUE 2\n")
    compiled(text, include_paths=[str(first), str(second)])
    (message,) = said()
    assert f"because {first / 'value.h'} is there now, where a header is looked for first" in message


@pytest.mark.parametrize(
    ("text", "options", "doubt"),
    [
        (
            '#define H(...) __VA_ARGS__\n#include H("a.h")\n__global__ void k() {}',
            {"headers": {"a.h": ""}},
            "the text includes what a macro names",
        ),
        ("__global__ void k(char* p) { *p = __TIME__[0]; }", {}, "the text uses __has_include, #include or __TIME__"),
    ],
    ids=["include of a macro", "time"],
)
def test_what_is_doubtful_says_why(said, text, options, doubt):
    compiled(text, **options)
    (message,) = said()
    assert f"because it is compiled each time, because {doubt}" in message


def test_nothing_is_said_when_nobody_asks(caplog, text):
    caplog.set_level(logging.WARNING, logger="bascule")
    compiled(text)
    assert not [record for record in caplog.records if record.name.startswith("bascule")]


def test_nvrtcs_options_are_for_debugging(caplog, text):
    caplog.set_level(logging.DEBUG, logger="bascule.jit")
    compiled(text)
    (message,) = [record.getMessage() for record in caplog.records if record.name == "bascule.jit"]
    assert message.startswith("NVRTC ")
    assert "-arch=" in message


def test_a_handler_may_compile_itself_and_threads_log_at_once(text):
    """No lock is held while a handler runs."""
    seen = []

    class Compiles(logging.Handler):
        def emit(self, record):
            seen.append(record.getMessage())
            if len(seen) == 1:
                bascule.compile(text)

    logger = logging.getLogger("bascule.cache")
    handler = Compiles()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        threads = [threading.Thread(target=bascule.compile, args=(f"{text}//{i}\n",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
            assert not thread.is_alive()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert len(seen) >= 5


PROGRAM = """
import bascule
bascule.compile("__global__ void k() {}")
bascule.compile("__global__ void k() {}")
"""


def run(program, level, cache):
    return run_python("-c", program, timeout=300, BASCULE_LOG=level, BASCULE_CACHE_DIR=str(cache))


def test_the_variable_prints_on_standard_error(tmp_path):
    first, second = (run(PROGRAM, "info", tmp_path / "cache").stderr for _ in range(2))
    assert re.match(r"bascule\.cache: k of <string>:1 for (compute|sm)_\d+[af]?: compiled in ", first)
    assert len(first.splitlines()) == 1
    assert ": from disk [key " in second
    assert "from memory" in run(PROGRAM, "debug", tmp_path / "cache").stderr
    assert run(PROGRAM, "off", tmp_path / "cache").stderr == ""


def test_a_programs_own_handlers_replace_the_printing(tmp_path):
    program = "import logging\nlogging.basicConfig(format='mine: %(message)s')\n" + PROGRAM
    lines = run(program, "info", tmp_path / "cache").stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("mine: k of ")


def test_a_value_that_means_nothing_is_an_error(tmp_path):
    assert "BASCULE_LOG is 'inof': set it to info" in run("import bascule", "inof", tmp_path).stderr


def test_without_the_variable_logging_is_not_imported(tmp_path):
    program = (
        "import sys, numpy\nbefore = 'logging' in sys.modules\nimport bascule\nprint(before, 'logging' in sys.modules)"
    )
    before, after = run(program, "", tmp_path).stdout.split()
    assert before == after


# --- Handlers that compile --------------------------------------------------------------------------------------------

COMPILING_HANDLER = """
import logging, threading
import bascule

options = bascule.CompileOptions(arch="compute_80")
compiled = 0

class Compiles(logging.Handler):
    def emit(self, record):
        global compiled
        compiled += 1
        TEXT

log = logging.getLogger("bascule")
log.setLevel(logging.DEBUG)
log.addHandler(Compiles())

def outer(i):
    for j in range(3):
        bascule.compile(f"__global__ void k(int* p) {{ *p = {10 * i + j}; }}", options=options)
        bascule.compile("__global__ void every(int* p) { *p = 1; } // each thread's", options=options)

threads = [threading.Thread(target=outer, args=(i,)) for i in range(THREADS)]
for thread in threads:
    thread.start()
outer(9)
for thread in threads:
    thread.join()
assert 4 <= compiled < 200, compiled
"""


def ends_well(program, directory):
    """Runs the program in a separate process with its cache in `directory`: it exits with 0, and stderr is empty."""
    ended = run_python("-c", program, BASCULE_CACHE_DIR=str(directory))
    assert (ended.returncode, ended.stderr) == (0, "")


NEW_TEXT = "bascule.compile(f'__global__ void inner(int* p) {{ *p = {compiled}; }}', options=options)"


@pytest.mark.parametrize(
    ("text", "threads"),
    [
        (NEW_TEXT, 0),
        (NEW_TEXT, 3),
        ("bascule.compile('__global__ void inner(int* p) { *p = 0; }', options=options)", 3),
        # In the thread that asked: NVRTC's own messages come from another one.
        (f"'from disk' in record.getMessage() or {NEW_TEXT}", 3),
        ("bascule.compile('__global__ void every(int* p) { *p = 1; } // each thread\\'s', options=options)", 3),
    ],
    ids=["new texts alone", "new texts", "one text", "in the thread that asked", "the same text"],
)
def test_a_handler_that_compiles_for_each_message_ends(text, threads, tmp_path):
    program = COMPILING_HANDLER.replace("TEXT", text).replace("THREADS", str(threads))
    ends_well(program, tmp_path)


def test_a_handler_that_waits_for_another_threads_compile_ends(tmp_path):
    """While the handler waits, it holds its own lock, which the other thread's messages need."""
    program = """
import logging, threading
import bascule

options = bascule.CompileOptions(arch="compute_80")
hold = bascule._bascule._hold_compiles
slow = "__global__ void slow(int* p) { *p = 1; }"
other = threading.Thread(target=lambda: bascule.compile(slow, options=options))

class Waits(logging.Handler):
    waited = False
    def emit(self, record):
        if threading.current_thread() is threading.main_thread() and not self.waited:
            self.waited = True
            hold(True)
            other.start()
            threading.Timer(0.3, hold, [False]).start()
            bascule.compile(slow, options=options)

log = logging.getLogger("bascule")
log.setLevel(logging.DEBUG)
log.addHandler(Waits())
bascule.compile("__global__ void k(int* p) { *p = 1; }", options=options)
other.join()
"""
    ends_well(program, tmp_path)
