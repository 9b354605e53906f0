"""Remembers modules of compiled texts, so that compiling a text again costs little more than a dict lookup.

Only texts that include no file are remembered, because their image cannot change, and only if their code has no
variables, because each module has its own. Texts with templates are not, because an instance that is compiled later may
have variables. All other texts go to the cache, which checks the headers first.
"""

from bascule import _bascule

_MOST = 1024

# A text without options is its own key, because making a tuple would cost more than the lookup. Options are compared by
# identity; the value keeps them alive, so that no other options get their id.
modules: dict[str, _bascule.Module] = {}
with_options: dict[tuple[str | None, int], tuple[_bascule.Module, _bascule.CompileOptions]] = {}
_seen: dict[
    tuple[str, int], _bascule.CompileOptions | None
] = {}  # texts that were compiled once; keeps the options alive


def keep(text: str, options: _bascule.CompileOptions | None, module: _bascule.Module) -> None:
    """Remember a compiled module if no file and no variable can change it.

    The second module of a text is kept and not the first, because the kernels of the first report that they were
    compiled, and later ones report that they came from memory.
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
