"""BASCULE_LOG: what was compiled and why, through Python's `logging`, on standard error.

Imported where the variable is set. Programs that configure `logging` themselves need neither: the loggers are
"bascule.cache" and "bascule.jit".
"""

from __future__ import annotations

import logging

from bascule import _errors

_LEVELS = {"info": logging.INFO, "debug": logging.DEBUG}


class _Handler(logging.StreamHandler):  # type: ignore[type-arg]
    """Prints only while the program has no handlers of its own, which get the messages too."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            super().emit(record)


def configure(level: str) -> None:
    """Print the messages of this level and above.

    Raises
    ------
    ArgumentValueError
        `level`, which is BASCULE_LOG, is neither info nor debug nor off.
    """
    if level == "off":
        return
    if level not in _LEVELS:
        raise _errors.ArgumentValueError(
            f"BASCULE_LOG is {level!r}: set it to info (what was compiled, and why), debug (hits in memory and calls "
            "of NVRTC too) or off, or unset it."
        )
    logger = logging.getLogger("bascule")
    logger.setLevel(_LEVELS[level])
    handler = _Handler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    logger.addHandler(handler)
