"""`bascule emulate`: run a program with the emulated device as its CUDA driver."""

import argparse
import os
import re
import shutil
import signal

from bascule._command.parser import Commands, UsageError, add_checks_option, add_command, require_checks

_EXAMPLES = """\
  bascule emulate -- python train.py --epochs 1
  bascule emulate --checks all -- python -m pytest tests
  bascule emulate --schedule lazy -- ./program"""

_DETAILS = """\
The program finds the emulated device as libcuda.so.1, and so do the processes that it starts. Programs on the driver
API work (numba-cuda, cuda.core, PyCUDA, programs in C); programs on the CUDA runtime (CuPy, PyTorch, JAX) do not.
Bascule in that program shares the device with it, and raises what checks find. Otherwise the reports are on stderr,
those of checks at the end. The exit status is always the program's."""


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands,
        "emulate",
        "run a program with the emulated device as its CUDA driver",
        usage="bascule emulate [--schedule SCHEDULE] [--checks LIST] -- COMMAND [ARGUMENT ...]",
        details=_DETAILS,
        examples=_EXAMPLES,
    )
    parser.add_argument(
        "--schedule",
        metavar="SCHEDULE",
        help="when enqueued work runs: threads (default), eager, lazy or random:SEED; see BASCULE_EMULATED_SCHEDULE",
    )
    add_checks_option(parser, "what is looked for: all, or names such as races,init,shared_races")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="the program and its arguments")
    parser.set_defaults(run=_emulate)


def _emulate(arguments: argparse.Namespace) -> int:
    command = arguments.command[arguments.command[:1] == ["--"] :]
    if not command:
        raise UsageError("there is no program to run: bascule emulate -- COMMAND")
    if shutil.which(command[0]) is None:
        raise UsageError(f"there is no program {command[0]}")
    if arguments.schedule is not None and not re.fullmatch(r"threads|eager|lazy|random:\d+", arguments.schedule):
        raise UsageError(
            f"--schedule {arguments.schedule}: it is threads, eager, lazy or random:SEED, such as random:7"
        )
    from bascule import _stand_ins

    variables = _stand_ins.environment(os.environ, arguments.schedule)
    if arguments.checks is not None:
        require_checks(arguments.checks)
        variables["BASCULE_EMULATED_CHECKS"] = arguments.checks
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these signals, and the program would inherit that
        signal.signal(number, signal.SIG_DFL)
    os.execvpe(command[0], command, variables)
