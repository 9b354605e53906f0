"""Gives the process a separate cache, which tests may empty: imported before Bascule, which reads its location."""

import os
import tempfile

DIRECTORY = tempfile.TemporaryDirectory(prefix="bascule-clients-")
os.environ["BASCULE_CACHE_DIR"] = DIRECTORY.name
