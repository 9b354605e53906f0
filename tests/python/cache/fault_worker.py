"""Compiles under faults, in a separate process that faults.py starts with file_faults.so preloaded.

    python fault_worker.py CHECK ROOT QUICK

ROOT is an empty directory; the cache is ROOT/cache. Prints counts as JSON, and a sentence for each failure: a program
that is not the requested one, more than one additional compile, an entry that does not verify.
"""

import contextlib
import ctypes
import errno
import json
import os
import resource
import shutil
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(sys.argv[2])
QUICK = sys.argv[3] == "1"
DIRECTORY, HEADERS = ROOT / "cache", ROOT / "headers"
os.environ["BASCULE_CACHE_DIR"] = str(DIRECTORY)

import bascule  # noqa: E402  (the directory is read at the import)

OPTIONS = bascule.CompileOptions(arch="sm_80", include_paths=[HEADERS])
TEXT = '#include "value.h"\n__global__ void k(int* p) { *p = VALUE; }'
OTHER = TEXT + " // another program"
ERRORS = [errno.EIO] if QUICK else [errno.EIO, errno.ENOSPC, errno.EINTR, errno.EACCES, errno.ESTALE, errno.EMFILE]
YEARS = 10 * 365 * 86400
ANOTHER_USER, NOBODY = 12345, 65534
EVERY_LATER = 1 << 40

# The values of `enum fault` in file_faults.c.
FAIL, RETURN_ZERO, KILL_BEFORE, KILL_AFTER, WRITE_HALF_AND_KILL, WAIT = range(1, 7)

counts: Counter[str] = Counter()
wrong: list[str] = []
expected: dict[int, str] = {}  # the PTX for each VALUE

faults = ctypes.CDLL(None)
faults.faults_name.restype = ctypes.c_char_p
faults.faults_calls.restype = ctypes.c_long


def arm(at: int, fault: int = 0, error: int = 0, count: int = 1) -> None:
    faults.faults_arm(ctypes.c_long(at), fault, error, ctypes.c_long(count))


def disarm() -> int:
    """Disarms the faults, and returns the number of calls since they were armed."""
    calls = faults.faults_calls()
    arm(-1)
    return calls


def call_name(at: int) -> str:
    """Returns the name of the function that call number `at` called, counted since the faults were armed."""
    return (faults.faults_name(ctypes.c_long(at)) or b"").decode()


def define(value: int) -> None:
    HEADERS.mkdir(exist_ok=True)
    (HEADERS / "value.h").write_text(f"#define VALUE {value}\n")


def compiled(value: int, what: str, text: str = TEXT) -> int:
    """Looks the program up as a new process would, and checks its VALUE. Returns how often it was compiled."""
    bascule.cache.clear()
    before = bascule.cache.stats().compiled
    ptx = bascule.compile(text, options=OPTIONS).k.ptx
    counts["lookups"] += 1
    if _body(ptx) != expected[value]:
        wrong.append(f"{what}: another program than the one with VALUE {value}")
    return bascule.cache.stats().compiled - before


def _body(ptx: str) -> str:
    return ptx[ptx.index(".visible") :]


def check_recovery(value: int, allowed: int, spent: int, what: str) -> None:
    """Checks the cache after a fault: the next lookup is right, the one after it is a hit, at most one compile more."""
    spent += compiled(value, f"{what}, then without it")
    if spent > allowed + 1:
        wrong.append(f"{what}: compiled {spent} times, {allowed} without the fault")
    counts["recompiles"] += max(0, spent - allowed)
    if compiled(value, f"{what}, third lookup"):
        wrong.append(f"{what}: the cache does not recover")
    for entry in bascule.cache.verify():
        wrong.append(f"{what}: {entry.name} is {entry.problem}")


# --- situations of a cache; each starts from the same state, prepares, and returns the VALUE that must be found ---


def _empty() -> None:
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    bascule.cache.limit_bytes = 2**30
    define(1)


def store() -> int:
    _empty()
    return 1


def hit() -> int:
    _empty()
    compiled(1, "preparation")
    return 1


def hit_after_a_day() -> int:
    hit()
    _make_old(DIRECTORY.iterdir())
    return 1


def changed_header() -> int:
    hit()
    define(2)
    return 2


def damaged_entry() -> int:
    hit()
    (entry,) = DIRECTORY.glob("*.0")
    entry.write_bytes(entry.read_bytes()[:-9])
    return 1


def sweep() -> int:
    """The store finds a full directory and an abandoned temporary file, a day after the last sweep."""
    _empty()
    compiled(1, "preparation", OTHER)
    (DIRECTORY / ("tmp-1-" + 16 * "0")).write_bytes(b"abandoned")
    _make_old(DIRECTORY.iterdir())
    bascule.cache.limit_bytes = sum(path.stat().st_size for path in DIRECTORY.glob("*.0"))
    return 1


def _make_old(paths: Iterator[Path]) -> None:
    for path in paths:
        os.utime(path, (time.time() - 86400,) * 2)


SITUATIONS: dict[Callable[[], int], int] = {  # with the number of compiles that each takes without a fault
    store: 1,
    hit: 0,
    hit_after_a_day: 0,
    changed_header: 1,
    damaged_entry: 1,
    sweep: 1,
}


# --- the checks ---


def file_calls() -> None:
    """Each file call fails once with each error; unless QUICK, also three times with EINTR and from then on with EIO.

    Reads and writes also return 0, from that call on.
    """
    for situation, allowed in SITUATIONS.items():
        if QUICK and situation not in (hit_after_a_day, sweep):
            continue
        value = situation()
        arm(-1)
        compiled(value, "without a fault")
        names = [call_name(at) for at in range(faults.faults_calls())]
        disarm()
        for at, name in enumerate(names):
            for error in ERRORS:
                _one_fault(situation, allowed, at, error, 1)
            if not QUICK:
                _one_fault(situation, allowed, at, errno.EINTR, 3)
                _one_fault(situation, allowed, at, errno.EIO, EVERY_LATER)
            if name in ("read", "write"):
                _one_fault(situation, allowed, at, 0, EVERY_LATER)


def _one_fault(situation: Callable[[], int], allowed: int, at: int, error: int, count: int) -> None:
    value = situation()
    kind = errno.errorcode[error] if error else "0"
    what = f"{situation.__name__}, call {at} gives {kind}" + (" from then on" if count == EVERY_LATER else "")
    arm(at, FAIL if error else RETURN_ZERO, error, count)
    spent = compiled(value, what)
    name = call_name(at)
    if disarm() <= at:
        return  # fewer calls than were counted: the header is now old enough to be trusted unread
    counts["faults"] += 1
    counts[f"{name} gives {kind}"] += 1
    check_recovery(value, allowed, spent, f"{what} ({name})")


def killed() -> None:
    """Sends kill -9 before and after every file call of a store, and in the middle of its write."""
    for situation in [store] if QUICK else [store, damaged_entry, sweep]:
        for fault in [WRITE_HALF_AND_KILL] if QUICK else [KILL_BEFORE, KILL_AFTER, WRITE_HALF_AND_KILL]:
            at = 0
            while True:
                value = situation()
                status = in_child(lambda at=at, fault=fault, value=value: (arm(at, fault), compiled(value, "child")))
                if os.WIFEXITED(status):
                    _expect_success(status, f"{situation.__name__}, kill at call {at}")
                    break
                counts["kills"] += 1
                counts["temporary files left"] += len(list(DIRECTORY.glob("tmp-*")))
                check_recovery(value, 1, 0, f"{situation.__name__}, killed at call {at}")
                _make_old(DIRECTORY.glob("tmp-*"))
                bascule.cache.trim()
                if any(DIRECTORY.glob("tmp-*")):
                    wrong.append(f"{situation.__name__}, killed at call {at}: a temporary file stays")
                at += 1


def in_child(action: Callable[[], object], user: int | None = None) -> int:
    """Runs `action` in a forked child, as `user` if given. Returns the wait status, which is 0 if it succeeded."""
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        status = 1
        with contextlib.suppress(BaseException):
            wrong.clear()
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            action()
            status = 1 if wrong else 0
        if wrong:
            os.write(2, "\n".join(wrong).encode() + b"\n")
        os._exit(status)
    return os.waitpid(child, 0)[1]


def _expect_success(status: int, what: str) -> None:
    if status != 0:
        wrong.append(f"{what}: the process ended with status {status}")


def full_disk() -> None:
    """Compiles more programs than fit on the disk (or into the file size limit); then frees space."""
    limited = "file size limit" in os.environ.get("FAULT_DISK", "")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limited:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    define(1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(8 if limited else 40):
            compiled(1, f"program {number}", f"{TEXT} // {number}")
    counts["programs"] = counts["lookups"]
    counts["kept"] = len(bascule.cache.list())
    counts["warnings"] = sum(issubclass(warning.category, bascule.CacheWarning) for warning in caught)
    if counts["warnings"] != 1 or counts["kept"] == counts["programs"]:
        wrong.append(f"the disk was not full: {dict(counts)}")
    for entry in bascule.cache.verify():
        wrong.append(f"{entry.name} is {entry.problem}")
    if any(DIRECTORY.glob("tmp-*")):
        wrong.append("a temporary file stays")
    if limited:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    bascule.cache.clear(disk=True)
    check_recovery(1, 1, 0, "a disk with room again")


def another_user() -> None:
    """A directory of another user is refused. One that root owns is used, and failing to write to it does no harm."""
    hit()
    for path in (ROOT, DIRECTORY, HEADERS):
        path.chmod(0o755)
    for path in (*DIRECTORY.iterdir(), *HEADERS.iterdir()):
        path.chmod(0o644)

    def expect(compiles: tuple[int, int], cache_warnings: int, what: str) -> None:
        def action() -> None:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                got = compiled(1, what), compiled(1, what)
            if got != compiles or len(caught) != cache_warnings:
                wrong.append(f"{what}: compiled {got}, warned {[str(warning.message) for warning in caught]}")

        before = sorted(os.listdir(DIRECTORY))
        _expect_success(in_child(action, NOBODY), what)
        if sorted(os.listdir(DIRECTORY)) != before:
            wrong.append(f"{what}: the directory was changed")
        counts["users"] += 1

    expect((0, 0), 0, "a directory of root's")
    define(2)
    expected[1], expected[2] = expected[2], expected[1]
    expect((1, 1), 1, "a directory of root's that lacks the program")
    expected[1], expected[2] = expected[2], expected[1]
    define(1)
    os.chown(DIRECTORY, ANOTHER_USER, ANOTHER_USER)
    expect((1, 1), 1, "a directory of another user")
    os.chown(DIRECTORY, NOBODY, NOBODY)
    (entry,) = DIRECTORY.glob("*.0")
    os.chown(entry, ANOTHER_USER, ANOTHER_USER)
    expect((1, 0), 0, "an entry of another user, which is replaced")


def clocks() -> None:
    """Stores, hits, edits and sweeps, each with a correct clock and with one that is ten years off."""
    offsets = (-YEARS, 0, YEARS)
    for stored in offsets:
        for used in offsets:
            what = f"stored at {stored:+} s, used at {used:+} s"
            _empty()
            faults.faults_set_clock(ctypes.c_long(stored))
            spent = compiled(1, what)
            faults.faults_set_clock(ctypes.c_long(used))
            compiled(1, what, OTHER)  # sweeps if a sweep is due
            spent += compiled(1, what)
            define(2)
            spent += compiled(2, f"{what}, header edited")
            faults.faults_set_clock(ctypes.c_long(0))
            check_recovery(2, 2, spent, what)
            counts["pairs of clocks"] += 1


def processes() -> None:
    """16 processes repeatedly ask for one program while its directory is deleted."""
    define(1)
    rounds = 3 if QUICK else 20

    def ask() -> None:
        for number in range(rounds):
            if compiled(1, f"round {number}") > 1:
                wrong.append("a lookup compiled twice")

    children = []
    for _ in range(16):
        child = os.fork()
        if child == 0:
            warnings.simplefilter("ignore")
            os._exit(os.waitstatus_to_exitcode(in_child(ask)))
        children.append(child)
    running = set(children)
    while running:
        shutil.rmtree(DIRECTORY, ignore_errors=True)
        counts["deletions"] += 1
        for child in list(running):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                running.remove(child)
                _expect_success(status, "one of 16 processes")
    counts["processes"], counts["lookups"] = len(children), len(children) * rounds
    check_recovery(1, 1, 0, "after the deletions")


def forks() -> None:
    """Another thread forks while a store is at each of its file calls; the child compiles the same program."""
    at = 0
    while True:
        store()
        arm(at, WAIT)

        def compile_in_thread(at: int = at) -> None:
            compiled(1, f"fork at call {at}, parent")
            faults.faults_reached()

        thread = threading.Thread(target=compile_in_thread)
        thread.start()
        faults.faults_wait()
        fired = faults.faults_calls() > at
        if fired:
            status = in_child(lambda at=at: (disarm(), compiled(1, f"fork at call {at}, child")))
            _expect_success(status, f"fork at call {at}")
            faults.faults_release()
        thread.join()
        disarm()
        if not fired:
            return
        counts["forks"] += 1
        check_recovery(1, 1, 1, f"fork at call {at}")
        at += 5 if QUICK else 1


CHECKS = {check.__name__: check for check in (file_calls, killed, full_disk, another_user, clocks, processes, forks)}


def main() -> None:
    for value in (1, 2):
        define(value)
        with bascule.cache.disabled():
            expected[value] = _body(bascule.compile(TEXT, options=OPTIONS).k.ptx)
    assert expected[1] != expected[2]
    faults.faults_watch(str(ROOT).encode())
    warnings.simplefilter("ignore", bascule.CacheWarning)
    CHECKS[sys.argv[1]]()
    print(json.dumps({"counts": counts, "wrong": wrong}))


if __name__ == "__main__":
    main()
