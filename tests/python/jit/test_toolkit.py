"""Where NVRTC and the headers are found."""

import pytest

from bascule import _toolkit


def test_the_wheels_are_found_where_cuda_pathfinder_finds_them(monkeypatch):
    if _toolkit._wheel() is None:
        pytest.skip("NVIDIA's wheels of CUDA 13 are not installed here")
    directories = _toolkit._header_directories()
    monkeypatch.setattr(_toolkit, "_wheel", lambda: None)
    assert directories == _toolkit._header_directories()
    monkeypatch.undo()
    root = _toolkit._wheel()
    monkeypatch.setattr(_toolkit.Path, "read_text", lambda _: "")  # as if NVRTC were not loaded yet
    libraries = _toolkit._libraries()
    assert libraries == [f"{root}/lib/libnvrtc.so.13"]
    monkeypatch.setattr(_toolkit, "_wheel", lambda: None)
    assert libraries == _toolkit._libraries()
