"""The places that are searched for NVRTC and the CUDA headers."""

import sys
from pathlib import Path

import pytest
from child_process import printed_by

import bascule
from bascule import _toolkit


def test_every_wheel_on_the_path_is_found_before_a_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for library in ("cuda_nvrtc/lib/libnvrtc.so.12", "cu13/lib/libnvrtc.so.13", "cu13/lib/libnvrtc-builtins.so.13.5"):
        (tmp_path / "nvidia" / library).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "nvidia" / library).touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    root = tmp_path.resolve() / "nvidia"
    wheels = [f"{root}/cu13/lib/libnvrtc.so.13", f"{root}/cuda_nvrtc/lib/libnvrtc.so.12"]
    assert _toolkit._libraries() == [*wheels, *bascule._bascule._toolkit_libraries()]


def test_cuda_pathfinder_is_asked_where_there_are_no_wheels():
    program = """
    import sys
    from bascule import _toolkit
    wheels = _toolkit._wheels()
    assert "cuda.pathfinder" not in sys.modules
    _toolkit._wheels = lambda: []
    found = _toolkit._libraries()
    print("cuda.pathfinder" in sys.modules, bool(wheels) <= (found[0] in wheels))
    """
    program = "\n".join(line[4:] for line in program.splitlines())
    assert printed_by("-c", program) == "True True\n"


def test_headers_are_those_beside_the_library_unless_others_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bascule.config, "include_paths", [])
    assert _toolkit.locate()[1:] == ([], True)
    monkeypatch.setattr(bascule.config, "include_paths", ["/own"])
    assert _toolkit.locate()[1:] == (["/own"], False)
