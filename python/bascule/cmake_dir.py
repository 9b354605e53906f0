"""`python -m bascule.cmake_dir` prints the directory of bascule-config.cmake, for CMake's `-Dbascule_DIR=`."""

import sys
from importlib.util import find_spec
from pathlib import Path

__all__ = ["cmake_dir"]


def cmake_dir() -> Path:
    """Return the directory of the CMake package. Raises FileNotFoundError if bascule-cpp is not installed."""
    places = getattr(find_spec("bascule_cpp"), "submodule_search_locations", None) or ()
    for place in places:
        if (found := Path(place) / "lib" / "cmake" / "bascule").is_dir():
            return found
    raise FileNotFoundError("Bascule's CMake package is not installed in this Python. Run: pip install bascule-cpp")


if __name__ == "__main__":
    try:
        print(cmake_dir())
    except FileNotFoundError as error:
        sys.exit(str(error))
