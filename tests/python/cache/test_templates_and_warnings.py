"""The disk cache also stores what belongs to an image: instances, answers of the compiler, layouts, and warnings."""

import json
import textwrap
from pathlib import Path

from child_process import printed_by

PROGRAM = textwrap.dedent(
    r"""
    import json, warnings
    import numpy as np
    import bascule

    TEXT = '''
    #define IN(T) const T* __restrict__
    struct Body { float x; double mass; };
    __constant__ int table[3] = {1, 2, 3};
    template <class T> __global__ void add(T a, bascule::array_view<const T> x, bascule::array_view<T> y) {
        int unused;
        y[threadIdx.x] = a + x[threadIdx.x];
    }
    template <class T> __global__ void hidden(IN(T) x) { if (x[0] == T(77)) __trap(); }
    __global__ void set(float* p) { *p = 1; }
    __global__ void set(double* p) { *p = 2 + table[2]; }
    __global__ void weigh(Body b, double* out) { *out = b.mass; }
    '''
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module = bascule.compile(TEXT)
        x, y = bascule.to_device(np.arange(4, dtype="f4")), bascule.to_device(np.zeros(4, "f4"))
        module.add[1, 4](2, x, y)
        module.hidden[1, 1](x)
        p = bascule.to_device(np.zeros(1))
        module.set[1, 1](p)
        out = bascule.to_device(np.zeros(1))
        body = np.zeros(1, np.dtype([("x", "f4"), ("mass", "f8")], align=True))[0]
        body["mass"] = 5.5
        module.weigh[1, 1](body, out)
        table = module.set.overload("double*").get_global("table").copy_to_host()
        for _ in range(2):
            bascule.cache.clear()
            bascule.compile(TEXT).add[1, 4](2, x, y)
    stats = bascule.cache.stats()
    print(json.dumps({
        "values": [y.copy_to_host().tolist(), p.copy_to_host().tolist(), out.copy_to_host().tolist(), table.tolist()],
        "nvrtc_calls": stats.nvrtc_calls,
        "compiled": stats.compiled,
        "warnings": sorted(str(w.message).splitlines()[0] for w in caught if w.category is bascule.CompileWarning),
    }))
    """
)


def run(directory: Path) -> dict:
    return json.loads(printed_by("-c", PROGRAM, BASCULE_CACHE_DIR=str(directory)))


def test_a_second_process_asks_the_compiler_nothing_and_hears_the_same_warnings_once(tmp_path: Path) -> None:
    first, second = run(tmp_path / "cache"), run(tmp_path / "cache")
    assert first["values"] == [[2, 3, 4, 5], [5], [5.5], [1, 2, 3]]
    assert first["compiled"] > 0
    assert second["values"] == first["values"]
    assert (second["compiled"], second["nvrtc_calls"]) == (0, 0)
    assert second["warnings"] == first["warnings"]
    assert len(set(first["warnings"])) == len(first["warnings"]) > 0
    assert any("unused" in warning for warning in first["warnings"])
