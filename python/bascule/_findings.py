"""What the checks of the emulated device find, as values."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class ThreadAction:
    """A thread of a kernel and what it did at a line: the other side of a race.

    what : such as 'wrote 4 bytes'. file, line, source_line : your own file, the line's number and its text; '' and 0 if
    unknown. block, thread : three numbers each.
    """

    what: str
    file: str
    line: int
    source_line: str
    block: tuple[int, int, int]
    thread: tuple[int, int, int]


@dataclass(frozen=True)
class Finding:
    """A place in a kernel where a check failed. `print(finding.report)` prints all of it.

    kind : the check, as in `bascule.emulated.checks`; of a race between streams only `kind` and `report` are set.
    kernel : with its template arguments. what, file, line, source_line, block, thread : the first thread that failed,
    as in `ThreadAction`. count : how many threads did so. address, bytes, space : the access, in 'global', 'shared' or
    'local' memory; in shared memory the address is the number of the byte. index : such as 'y[i + 1] is y[1024]', if it
    is certain. other : the other side of a race between threads. advice : what to write instead. launch : the line that
    launched the kernel. report : the whole text.
    """

    kind: str
    kernel: str
    what: str
    file: str
    line: int
    source_line: str
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    count: int
    address: int
    bytes: int
    space: str
    index: str
    other: ThreadAction | None
    advice: str
    launch: str
    report: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict of numbers, strings and sequences, as `json.dumps` takes it."""
        return asdict(self)


for _class in (ThreadAction, Finding):
    _class.__module__ = "bascule.emulated"
