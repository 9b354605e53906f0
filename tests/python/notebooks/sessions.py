"""A notebook's kernel that tests talk to, as a front end does."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

TIMEOUT = 60  # seconds, for actions that take less than one


def plain(text: str) -> str:
    """Returns the text without colour codes."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@dataclass
class Cell:
    """The output of a cell: the kernel's messages, in order."""

    status: str = ""
    messages: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The printed text."""
        return "".join(content["text"] for kind, content in self.messages if kind == "stream")

    @property
    def value(self) -> str:
        return "".join(content["data"]["text/plain"] for kind, content in self.messages if kind == "execute_result")

    @property
    def displays(self) -> list[str]:
        """The displayed objects, and those that replaced them."""
        kinds = ("display_data", "update_display_data")
        return [plain(content["data"]["text/plain"]) for kind, content in self.messages if kind in kinds]

    @property
    def coloured_error(self) -> str:
        return "\n".join("\n".join(content["traceback"]) for kind, content in self.messages if kind == "error")

    @property
    def error(self) -> str:
        return plain(self.coloured_error)

    @property
    def error_name(self) -> str:
        return "".join(content["ename"] for kind, content in self.messages if kind == "error")


def environment(cache: Path, **others: str) -> dict[str, str]:
    """The environment of a notebook kernel: users' defaults, not the schedule of the tests."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("BASCULE_EMULATED")}
    return {**ours, "BASCULE_DEVICE": "emulated", "BASCULE_CACHE_DIR": str(cache), **others}


class Session:
    """One process of a notebook kernel."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client

    def run(self, code: str, on_message: Callable[[str, dict[str, Any]], None] | None = None) -> Cell:
        """Runs a cell. Calls `on_message` for each message when it arrives."""
        cell = Cell()

        def keep(message: dict[str, Any]) -> None:
            kind, content = message["msg_type"], message["content"]
            cell.messages.append((kind, content))
            if on_message is not None:
                on_message(kind, content)

        reply = self.client.execute_interactive(code, timeout=TIMEOUT, output_hook=keep, allow_stdin=False)
        cell.status = reply["content"]["status"]
        return cell

    def evaluate(self, expression: str) -> str:
        """The repr of an expression's value."""
        cell = self.run(expression)
        assert cell.status == "ok", cell.error
        return cell.value

    def interrupt(self) -> None:
        """Interrupts the kernel, like the stop button."""
        self.manager.interrupt_kernel()


@contextmanager
def session(cache: Path, **others: str) -> Iterator[Session]:
    """A notebook kernel that has loaded the extension."""
    manager, client = start_new_kernel(kernel_name="python3", env=environment(cache, **others), startup_timeout=TIMEOUT)
    try:
        started = Session(manager, client)
        loaded = started.run("%load_ext bascule\nimport bascule\nimport numpy as np")
        assert loaded.status == "ok", loaded.error
        yield started
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
