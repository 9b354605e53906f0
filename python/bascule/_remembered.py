"""Modules of texts that were compiled before, so that compiling one again costs little more than a dict lookup.

Only texts that read no file are here, since what they compile to cannot change, and that have no variables, since
modules do not share those. Everything else goes to the cache, which looks at the headers first.
"""

from __future__ import annotations

from bascule import _bascule

_MOST = 1024

# The text alone is the key where there are no options, because a tuple would cost more than the lookup. Options are
# told by identity; the tuple keeps them, so that no others can get their address.
modules: dict[str | None, _bascule.Module] = {}
with_options: dict[tuple[str | None, int], tuple[_bascule.Module, _bascule.CompileOptions]] = {}
_seen: dict[tuple[str, int], _bascule.CompileOptions | None] = {}  # compiled once; keeps the options, too


def keep(text: str, options: _bascule.CompileOptions | None, module: _bascule.Module) -> None:
    """Remember a module that has been compiled, if nothing on disk can change it.

    The second of a text is kept, not the first: that one's kernels say that they were compiled, the others' that they
    came from memory.
    """
    key = (text, id(options))
    if key not in _seen:
        if len(_seen) >= _MOST:
            forget()
        _seen[key] = options
        return
    if not _bascule._can_be_shared(text, _bascule.CompileOptions() if options is None else options):
        return
    if options is None:
        modules[text] = module
    else:
        with_options[text, id(options)] = (module, options)


def forget() -> None:
    """Ask the cache again about every text."""
    _seen.clear()
    modules.clear()
    with_options.clear()
