"""BASCULE_LOG: prints to standard error what was compiled and why, through Python's `logging`.

Imported only if the variable is set. Programs that configure `logging` themselves do not need the variable: they use
the loggers "bascule.cache" and "bascule.jit".
"""

import logging

from bascule import _errors

_LEVELS = {"info": logging.INFO, "debug": logging.DEBUG}


def configure(level: str) -> None:
    """Print the messages of this level and above."""
    if level == "off":
        return
    if level not in _LEVELS:
        raise _errors.ArgumentValueError(
            f"BASCULE_LOG is {level!r}: set it to info (what was compiled, and why), debug (hits in memory and calls "
            "of NVRTC too) or off, or unset it."
        )
    logger = logging.getLogger("bascule")
    logger.setLevel(_LEVELS[level])
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    # If the program has configured handlers of its own, they print the messages and this one does not.
    handler.addFilter(lambda record: not logging.getLogger().handlers)
    logger.addHandler(handler)
