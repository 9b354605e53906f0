"""Modules of texts that were compiled before, so that compiling one again costs little more than a dict lookup.

Only texts that read no file, because their image cannot change, and whose code has no variables, because modules do
not share those; templates, whose instances are compiled later, may have some. Everything else goes to the cache, which
checks the headers first.
"""

from bascule import _bascule

_MOST = 1024

# Without options the text alone is the key, because making a tuple would cost more than the lookup. Options are
# compared by identity; the tuple keeps them alive, so that no others get their address.
modules: dict[str, _bascule.Module] = {}
with_options: dict[tuple[str | None, int], tuple[_bascule.Module, _bascule.CompileOptions]] = {}
_seen: dict[tuple[str, int], _bascule.CompileOptions | None] = {}  # compiled once; keeps the options alive


def keep(text: str, options: _bascule.CompileOptions | None, module: _bascule.Module) -> None:
    """Remember a module that has been compiled, if nothing on disk can change it.

    The second module of a text is kept, not the first: the first one's kernels report that they were compiled, later
    ones that they came from memory.
    """
    key = (text, id(options))
    if key not in _seen:
        if len(_seen) >= _MOST:
            forget()
        _seen[key] = options
        return
    if _bascule._cache_is_disabled() or not _bascule._can_be_shared(module):
        return
    if options is None:
        modules[text] = module
    else:
        with_options[text, id(options)] = (module, options)


def forget() -> None:
    """Drop every module; the next compile of a text goes to the cache."""
    _seen.clear()
    modules.clear()
    with_options.clear()
