"""Prints every message that tests get from Bascule, once, by the class of its error or warning, for review.

    python tests/python/mistakes/catalogue.py [TESTS...]

TESTS are arguments of pytest; the default is all tests of messages. Messages that differ only in numbers, in text in
quotes or parentheses, or in what an argument was count as one. Output of a test's subprocesses is not included. The
exit status is pytest's.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parents[1]
ABOUT_MESSAGES = [
    "mistakes",
    "porting",
    "conformance",
    "launches",
    "test_errors.py",
    "test_faults.py",
]
VARYING = re.compile(
    r"\bgot .*?(?=[.;:]\s|\.?$)|\([^)]*\)|0x[0-9a-f]+|\d+(\.\d+)?|'[^']*'|\"[^\"]*\"|`[^`]*`", re.MULTILINE
)


class Catalogue:
    """A pytest plugin that records the first message of each kind, and the test that got it."""

    def __init__(self) -> None:
        self._test = ""
        self._seen: set[tuple[str, str]] = set()
        self.messages: dict[str, list[tuple[str, str]]] = defaultdict(list)

    def add(self, kind: type, message: str) -> None:
        # Tests that generate arguments would fill the catalogue with variations of one sentence.
        alike = VARYING.sub("N", message)
        if (kind.__name__, alike) in self._seen or kind.__module__.split(".")[0] != "bascule":
            return
        self._seen.add((kind.__name__, alike))
        self.messages[kind.__name__].append((message, self._test))

    @pytest.hookimpl
    def pytest_collection_finish(self) -> None:
        import bascule

        catalogue = self

        def init(error: BaseException, *arguments: Any) -> None:
            catalogue.add(type(error), str(arguments[0]) if arguments else "")
            BaseException.__init__(error, *arguments)

        bascule.Error.__init__ = init  # type: ignore[method-assign]
        warn = warnings.warn_explicit

        def warn_explicit(message: Any, category: Any, *rest: Any, **more: Any) -> None:
            catalogue.add(category, str(message))
            warn(message, category, *rest, **more)

        warnings.warn_explicit = warn_explicit

    @pytest.hookimpl
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._test = item.nodeid


def main() -> int:
    catalogue = Catalogue()
    tests = sys.argv[1:] or [str(TESTS / name) for name in ABOUT_MESSAGES]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=short"]
    status = pytest.main([*options, *tests], plugins=[catalogue])
    for kind, messages in sorted(catalogue.messages.items()):
        print(f"\n=== {kind}: {len(messages)}")
        for message, test in sorted(messages):
            print(f"\n{message}\n    [{test}]")
    print(f"\n{sum(map(len, catalogue.messages.values()))} messages of {len(catalogue.messages)} classes")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
