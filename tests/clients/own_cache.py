"""Gives the process a cache of its own, which tests may empty: imported before Bascule, which reads where it is."""

import os
import tempfile

DIRECTORY = tempfile.TemporaryDirectory(prefix="bascule-clients-")
os.environ["BASCULE_CACHE_DIR"] = DIRECTORY.name
