"""In a subinterpreter `import bascule` raises at once, and the main interpreter still works."""

from __future__ import annotations

import importlib.util

import pytest

from .processes import USE, run

MODULE = next((name for name in ("_interpreters", "_xxsubinterpreters") if importlib.util.find_spec(name)), None)
pytestmark = pytest.mark.skipif(MODULE is None, reason="this Python has no subinterpreters")

IMPORT = f"""
import {MODULE} as interpreters
def import_elsewhere():
    code = '''
try:
    import bascule
except ImportError as error:
    print(error, flush=True)
'''
    run_code = getattr(interpreters, "exec", None) or interpreters.run_string
    run_code(interpreters.create(), code)
"""


@pytest.mark.parametrize("before", ["", "import bascule\n"])
def test_the_import_is_an_error_that_says_why(before: str) -> None:
    ended = run("", before + IMPORT + "import_elsewhere()\nraise SystemExit\n")
    assert ended.returncode == 0, ended.stderr
    assert "subinterpreters" in ended.stdout


def test_the_main_interpreter_imports_and_launches_after_that() -> None:
    program = """
        import_elsewhere()
        x = array()
        kernel[1, 256](x, 256)
        assert (x.copy_to_host() == 1).all()
    """
    ended = run(USE + IMPORT + program.replace("        ", ""))
    # Python 3.14 warns that the other interpreter is still there.
    errors = [line for line in ended.stderr.splitlines() if "remaining subinterpreters" not in line]
    assert (ended.returncode, errors) == (0, [])
    ended = run(USE + program.replace("        ", ""), IMPORT + "import_elsewhere()\n")
    assert ended.returncode == 0, ended.stderr
