"""A process that compiles programs into the cache on disk: `python -m bascule._compile_worker DESCRIPTOR`.

Reads pickled jobs from standard input until its end, and writes a pickled result for each job to file descriptor
DESCRIPTOR. Standard output is not used for results, because sitecustomize and others may print to it.
"""

import os
import pickle
import sys
import warnings
from typing import Any

import bascule
from bascule import _bascule, _pickling


def main() -> None:
    """Compile the jobs of the parent process until it closes standard input."""
    jobs = sys.stdin.buffer
    results = os.fdopen(int(sys.argv[1]), "wb")
    bascule.config.nvrtc_library, bascule.config.include_paths = pickle.load(jobs)
    while True:
        try:
            job = pickle.load(jobs)
        except EOFError:
            return
        pickle.dump(_compile(*job), results)
        results.flush()


def _compile(recipe: tuple[Any, ...], reference: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """Compile one program and return an `Outcome` of `_compile_team`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", bascule.CacheWarning)
        try:
            module = _pickling.shared_module(*recipe)
            program = module if reference is None else _bascule._find_kernel(module, *reference)
            origin, milliseconds = program._compile_ahead()
        except Exception as error:
            return "", 0.0, [], error
    return origin, milliseconds, [str(warning.message) for warning in caught], None


if __name__ == "__main__":
    main()
