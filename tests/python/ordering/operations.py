"""The operations that the ordering tests put in order: one row describes each.

From a row, scenarios.py derives the scenario that shows that Bascule orders the operation; race_programs.py derives the
programs in which the operation races with each other one, and those in which an event orders the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from raw_driver import peer_copy
from scene import MEMORY, N, Scene, Stream, kernels, unordered

import bascule


@dataclass(frozen=True)
class Operation:
    """`issue(scene, stream, x)` issues it on the array x. If x names another stream, Bascule orders it."""

    issue: Callable[[Scene, Stream, bascule.DeviceArray], object]
    writes: bool
    kernel: str = ""  # its name in reports; copies and fills have none
    memory: tuple[str, ...] = ("device",)  # the kinds of memory that x may have
    peer: bool = True  # x may be on another device than the stream
    ordered: bool = True  # False: another library's operation, or orders x only before the operation
    waits: bool = False  # the host waits until it is complete
    atomic: bool = False  # does not race with itself

    def unordered(self, x: bascule.DeviceArray) -> object:
        """Returns x without a stream; as a NumPy array if the operation takes only pinned memory."""
        return np.asarray(x) if self.memory == ("pinned",) else unordered(x)


reads, writes = partial(Operation, writes=False), partial(Operation, writes=True)
foreign_reads, foreign_writes = partial(reads, ordered=False), partial(writes, ordered=False)
ANY = tuple(MEMORY)


def assign(stream: Stream, to: bascule.DeviceArray, value: bascule.DeviceArray) -> None:
    with stream:
        to[...] = value


OPERATIONS: dict[str, Operation] = {
    # Operations of another library, or of the driver
    "write": foreign_writes(lambda s, c, x: s.produce(c, x), kernel="set", memory=ANY),
    "read": foreign_reads(lambda s, c, x: s.consume(c, x), kernel="read", memory=ANY),
    "driver_copy_from": foreign_reads(lambda s, c, x: peer_copy(s.array(c), x, c)),
    "driver_copy_to": foreign_writes(lambda s, c, x: peer_copy(x, s.array(c), c)),
    # Launches
    "launch_reading": reads(lambda s, c, x: s.sum(c, x), kernel="sum1"),
    "launch_writing": writes(lambda s, c, x: s.bump(c, x), kernel="bump", memory=ANY),
    "launch_reading_a_view": reads(lambda s, c, x: s.launcher("copy_view", c)(s.array(c), x[::2]), kernel="copy_view"),
    "launch_writing_a_view": writes(lambda s, c, x: s.launcher("set_view", c)(x[::2], 5), kernel="set_view"),
    "launch_of_a_template": reads(lambda s, c, x: s.launcher("shift", c)(s.array(c), x, N), kernel="shift"),
    "launch_for_all": writes(
        lambda s, c, x: kernels().bump.forall(N, stream=c).options(peer=s.devices > 1)(x, N), kernel="bump"
    ),
    "launch_by_name": writes(
        lambda s, c, x: kernels().bump.launch(1, N, (x, N), stream=c, peer=s.devices > 1), kernel="bump"
    ),
    "bound_launch": writes(lambda s, c, x: s.launcher("bump", c).bind(x, N)(), kernel="bump"),
    "graph_launch": writes(lambda s, c, x: s.graph(c, "bump", x, N).launch(c), kernel="bump"),
    "atomic_sum": writes(lambda s, c, x: s.launcher("count", c)(x), kernel="count", atomic=True),
    # Copies, fills, conversions, assignments
    "copy_to_the_host": reads(lambda s, c, x: x.copy_to_host(stream=c), peer=False, waits=True),
    "copy_to_pinned_memory": reads(
        lambda s, c, x: x.copy_to_host(out=s.array(c, memory="pinned"), stream=c), peer=False
    ),
    "copy_from_the_host": writes(lambda s, c, x: x.copy_from_host(np.arange(N, dtype="i4"), stream=c), peer=False),
    "copy_from_pinned_memory": writes(
        lambda s, c, x: x.copy_from_host(np.asarray(s.array(c, memory="pinned")), stream=c), peer=False
    ),
    "copy_into_pinned_memory": writes(lambda s, c, x: s.array(c).copy_to_host(out=x, stream=c), memory=("pinned",)),
    "copy_out_of_pinned_memory": foreign_reads(
        lambda s, c, x: s.array(c).copy_from_host(np.asarray(x), stream=c), memory=("pinned",)
    ),
    "copy": reads(lambda s, c, x: s.kept.append(x.copy(stream=c)), peer=False),
    "conversion": reads(lambda s, c, x: s.kept.append(x.astype("f8", stream=c)), peer=False),
    "fill": writes(lambda s, c, x: x.fill(5, stream=c), peer=False),
    "fill_of_every_second_element": writes(lambda s, c, x: x[::2].fill(5, stream=c), peer=False),
    "assignment_from": reads(lambda s, c, x: assign(c, s.array(c), x)),
    "assignment_to_every_second_element": reads(  # from another device it is two operations
        lambda s, c, x: assign(c, s.array(c, 2 * N)[::2], x), peer=False
    ),
    "import_by_dlpack": foreign_writes(
        lambda s, c, x: s.bump(c, bascule.from_dlpack(x, stream=c)), kernel="bump", peer=False
    ),
}
