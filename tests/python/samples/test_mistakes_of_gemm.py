"""What the page on tensor maps says of the usual mistakes in samples/gemm_tma.py is what one sees."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from child_process import run_python

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = (ROOT / "samples" / "gemm_tma.py").read_text()
PAGE = ROOT / "python" / "docs" / "tensor_maps.md"
B_MAP = "b_map = bascule.tensor_map(b, (64, 64), swizzle=128)"
WAIT = "        while (!ptx::mbarrier_try_wait_parity(&full[step % stages], step / stages % 2)) {}\n"
FENCE = '        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");\n'
MISTAKES = {
    "`swizzle=64` for rows of 128 bytes": (B_MAP, B_MAP.replace("128", "64")),
    "a box of 512 columns": (B_MAP, B_MAP.replace("(64, 64)", "(64, 512)")),
    "rows that are 658 bytes apart": (
        'standard_normal((n, k)).astype("f2"))',
        'standard_normal((n, k + 1)).astype("f2"))[:, :k]',
    ),
    "the array for its map": ("(a_map, b_map, c, m, n, k)", "(a, b_map, c, m, n, k)"),
    "no `__grid_constant__`": ("const __grid_constant__ CUtensorMap b,", "CUtensorMap b,"),
    "tiles that are not aligned": ("struct __align__(1024) Stage { __half", "struct Stage { __half pad[8],"),
    "too little dynamic shared memory": ("shared_bytes=shared_bytes", "shared_bytes=shared_bytes // 2"),
    "`expect_tx` with more bytes than arrive": ("A_BYTES + B_BYTES);", "2 * A_BYTES + B_BYTES);"),
    "a tile is not waited for": (WAIT, ""),
    "no `wgmma.fence`": (FENCE, ""),
}
WRONG = {
    "fewer bytes": ("A_BYTES + B_BYTES);", "A_BYTES);", "nan"),
    "no wait": (" wgmma.wait_group.sync.aligned 0;", "", "nan"),
    "another swizzle": ("| 1ull << 62", "| 2ull << 62", "e+01"),
    "coordinates in the array's order": ("at_a[] = {step * 64, row}", "at_a[] = {row, step * 64}", "e+01"),
}


def changed(tmp_path: Path, old: str, new: str):
    assert SAMPLE.count(old) == 1
    file = tmp_path / "gemm.py"
    file.write_text(SAMPLE.replace(old, new))
    return run_python(str(file), BASCULE_DEVICE="emulated", BASCULE_EMULATED_ARCH="90a", BASCULE_EMULATED_TIMEOUT="2")


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_message_is_the_one_on_the_page(emulated, tmp_path, mistake):
    (said,) = re.findall(rf"^\| {re.escape(mistake)} \| `(.*)` \|$", PAGE.read_text(), re.MULTILINE)
    done = changed(tmp_path, *MISTAKES[mistake])
    assert done.returncode == 1
    assert said in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("mistake", WRONG)
def test_the_result_shows_it(emulated, tmp_path, mistake):
    old, new, difference = WRONG[mistake]
    done = changed(tmp_path, old, new)
    assert done.returncode == 1
    assert re.search(rf"^WRONG .* at most .*{re.escape(difference)}$", done.stdout, re.MULTILINE)
