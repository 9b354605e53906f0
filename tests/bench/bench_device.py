"""Imported before bascule: selects the device of the benchmarks, and a separate cache directory.

That is the emulated device without executing kernels, unless BASCULE_BENCH_DEVICE names another.
"""

import atexit
import os
import shutil
import tempfile

os.environ["BASCULE_DEVICE"] = os.environ.get("BASCULE_BENCH_DEVICE", "emulated")
os.environ["BASCULE_EMULATED_EXECUTE"] = "0"
CACHE = tempfile.mkdtemp(prefix="bascule-bench-")
os.environ["BASCULE_CACHE_DIR"] = CACHE
atexit.register(shutil.rmtree, CACHE, ignore_errors=True)
