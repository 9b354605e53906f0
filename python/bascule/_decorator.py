"""`bascule.kernel`: makes a function that launches a kernel, from CUDA C++ text and a Python launch rule."""

from __future__ import annotations

import functools
import sys
import threading
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bascule import _bascule, _compile, _errors, _places
from bascule._compile import checked_name_expressions, module_at
from bascule._displayed import Displayed, DocumentationOfInstance, SignatureOfInstance


def kernel(
    source: str,
    options: _bascule.CompileOptions | Mapping[str, Any] | Sequence[str] | None = None,
    *,
    name: str | None = None,
    name_expressions: Iterable[str] | None = (),
) -> Callable[[Callable[..., Any]], LaunchRule]:
    """Decorate a launch rule: a function with the kernel's parameters that returns how many threads to launch.

    The rule returns an int, a tuple of up to three extents (one thread per element), or a `LaunchConfig`; None is an
    error. The text is compiled at the first call, not at import.

    Parameters
    ----------
    source : str
        CUDA C++ with one `__global__` function, or with one named like the rule.
    options : CompileOptions, dict or list of str, optional
        As for `bascule.compile`.
    name : str, optional
        Name of the kernel, if it differs from the rule's.
    name_expressions : list of str, optional
        Instances of a template, like `"saxpy<float>"`, as for `bascule.compile`. `bascule precompile` compiles these
        ahead; any other instance is compiled when a launch needs it.

    Examples
    --------
    >>> @bascule.kernel(r'''
    ... __global__ void scale(float* p, float f, int n) {
    ...     int i = blockIdx.x * blockDim.x + threadIdx.x;
    ...     if (i < n) p[i] *= f;
    ... }''')
    ... def scale(p, f, n):
    ...     return n
    >>> scale(x, 2, x.size)
    """
    if not isinstance(source, str):
        raise _errors.ArgumentTypeError(
            f"bascule.kernel takes the CUDA C++ text: @bascule.kernel(source); got {type(source).__name__}"
        )
    instances = checked_name_expressions(name_expressions)
    sites = _places.sites(sys._getframe(1))
    return lambda rule: LaunchRule(rule, source, name, options, sites, instances)


class LaunchRule(Displayed):
    """A kernel with a launch rule; calling it launches. Created by `bascule.kernel`. Any thread may call it.

    A rule that its module has under its own name is pickled by that name, like a function. Other rules are pickled by
    value, which needs cloudpickle. `copy.copy` returns the rule itself.
    """

    __signature__ = SignatureOfInstance()

    def __init__(
        self,
        rule: Callable[..., Any],
        source: str,
        name: str | None,
        options: Any,
        sites: tuple[_places.Site, ...],
        instances: tuple[str, ...] = (),
    ) -> None:
        functools.update_wrapper(self, rule)
        if rule.__doc__ is None:
            del self.__doc__  # so that the kernel's documentation is used
        self._rule = rule
        import inspect

        self._rule_signature = inspect.signature(rule)
        self._source = source
        self._name = name
        self._options = options
        self._sites = sites
        self._instances = instances
        self._make_module: Callable[..., _bascule.Module] = _bascule._make_module
        self._lock = threading.Lock()
        self._kernel: _bascule.Kernel | None = None
        self._family: LaunchRule | None = None  # the rule that this is an instance or overload of
        if _compile.collected is not None:
            _compile.collected.append(self)

    @property
    def kernel(self) -> _bascule.Kernel:
        """The kernel, compiled at the first use."""
        if self._kernel is None:
            with self._lock:
                if self._kernel is None:
                    self._kernel = self._find_kernel()
        return self._kernel

    @_bascule._public
    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Launch with the grid and block that the rule returns for these arguments."""
        kernel = self.kernel
        try:
            bound = self._rule_signature.bind(*args, **kwargs)
        except TypeError as error:
            raise self._wrong_arguments(error, kwargs) from None
        bound.apply_defaults()
        work = self._rule(*bound.args, **bound.kwargs)
        if work is None:
            raise _errors.ArgumentTypeError(
                f"the launch rule {self.__name__!r} returned None; return how many threads to launch: "
                "an int, a tuple, or a LaunchConfig"
            )
        launcher = kernel[work] if isinstance(work, _bascule.LaunchConfig) else kernel.forall(work)
        launcher(*bound.args, **bound.kwargs)

    def _wrong_arguments(self, error: TypeError, keywords: dict[str, Any]) -> _errors.ArgumentTypeError:
        unknown = [name for name in keywords if name not in self._rule_signature.parameters]
        place = _bascule._place_of_keyword(self.__name__, unknown[0]) if unknown else ""
        problem = f"has no parameter {unknown[0]!r}" if unknown else str(error)
        message = f"{self.__name__}{self._rule_signature} {problem}" + (f". {place}" if place else "")
        found = _errors.ArgumentTypeError(message)
        found.name = unknown[0] if unknown else ""
        return found

    @_bascule._public
    def __getitem__(self, key: Any) -> _bascule.Launcher:
        """A Launcher that ignores the rule: `[grid, block]` or `[grid, block, stream, shared_bytes]`."""
        return self.kernel[key]

    def prepare(self, *args: Any, **kwargs: Any) -> _bascule.Kernel:
        """Compile and load the kernel without launching it, as `Kernel.prepare` does."""
        return self.kernel.prepare(*args, **kwargs)

    def instantiate(self, *args: Any, **kwargs: Any) -> LaunchRule:
        """Return this rule for one instance of a template; arguments as for `Kernel.instantiate`."""
        return _rule_of(self, self.kernel.instantiate(*args, **kwargs))

    def overload(self, parameter_types: str) -> LaunchRule:
        """Return this rule for one of several overloads; arguments as for `Kernel.overload`."""
        return _rule_of(self, self.kernel.overload(parameter_types))

    def __copy__(self) -> LaunchRule:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> LaunchRule:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle an instance or an overload as the original rule and the kernel, and any other rule as its parts.

        With protocols before 4, a rule that its module has under its name is pickled by that name.
        """
        if self._family is not None:
            return _rule_of, (self._family, self._kernel)
        if protocol < 4 and _find_rule(self.__module__, self.__qualname__) is self:
            return str(self.__qualname__)  # protocols before 4 do not support dotted names
        parts = (self._pickled_function, self._source, self._name, self._options, self._sites, self._instances)
        return _unpickled_rule, parts

    @functools.cached_property
    def _pickled_function(self) -> Callable[..., Any]:
        """The decorated function, with a qualified name by which pickle finds it if pickle can find the rule.

        The function's own name cannot be used, because it is the rule's. Pickle looks the function up as this attribute
        of the rule. cloudpickle includes the function when it pickles by value.
        """
        function = self._rule
        if not isinstance(function, types.FunctionType) or _find_rule(self.__module__, self.__qualname__) is not self:
            return function
        named = types.FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        functools.update_wrapper(named, function)
        del named.__dict__["__wrapped__"]
        named.__kwdefaults__ = function.__kwdefaults__
        named.__qualname__ = f"{self.__qualname__}._pickled_function"
        return named

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.kernel, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in dir(_bascule.Kernel) if not name.startswith("_"))]

    def __repr__(self) -> str:
        state = repr(self._kernel) if self._kernel is not None else "not compiled yet"
        return f"<bascule.LaunchRule {self.__name__}: {state}>"

    def _find_kernel(self) -> _bascule.Kernel:
        module = self._module()
        module._compile()
        return self._checked(self._choose(module))

    def _checked(self, found: _bascule.Kernel) -> _bascule.Kernel:
        """Return the kernel. Raises ArgumentTypeError if its parameters differ from the rule's."""
        declared = [name for name, _ in found.parameters]
        rule = list(self._rule_signature.parameters)
        if len(rule) != len(declared):
            raise _errors.ArgumentTypeError(
                f"the launch rule {self.__name__!r} takes {len(rule)} parameters ({', '.join(rule)}), but the kernel "
                f"is {found.signature}; give the rule the same parameters"
            )
        # A parameter without a name is called arg1, arg2, ...: the compiler does not report the names of kernels that
        # macros make.
        unnamed = [f"arg{i}" for i in range(1, len(declared) + 1)]
        pairs = zip(rule, declared, unnamed, strict=True)
        different = [(r, d) for r, d, u in pairs if d not in (r, u)]
        if different:
            raise _errors.ArgumentTypeError(
                f"the launch rule {self.__name__!r} names a parameter {different[0][0]!r} that the kernel names "
                f"{different[0][1]!r}: {found.signature}; give the rule the same names in the same order"
            )
        return found

    def _module(self) -> _bascule.Module:
        place = _places.find(self._source, self._sites)
        return module_at(place, self._source, self._options, self._instances, self._make_module)

    def _choose(self, module: _bascule.Module) -> _bascule.Kernel:
        names: list[str] = module.__class__.kernels.__get__(module)
        wanted = self._kernel_among(names)
        if self._name is None and names and wanted not in names:
            raise _errors.CompileError(
                f"the text has {len(names)} kernels ({', '.join(names)}) and none is named {wanted!r} like the "
                "launch rule; choose one: bascule.kernel(source, name=...)"
            )
        return module[wanted]

    def _kernel_among(self, names: list[str]) -> str:
        """Return the name of the rule's kernel; a kernel of that name may not exist."""
        return names[0] if self._name is None and len(names) == 1 else self._name or self.__name__


def _rule_of(family: LaunchRule, kernel: _bascule.Kernel) -> LaunchRule:
    """Return `family` for one of its instances or overloads."""
    rule = object.__new__(LaunchRule)
    rule.__dict__.update(family.__dict__)
    rule._kernel = rule._checked(kernel)
    rule._family = family
    return rule


LaunchRule.__module__ = "bascule"
# A class body cannot have both a docstring and a descriptor of that name.
LaunchRule.__doc__ = DocumentationOfInstance(LaunchRule.__doc__)


def _unpickled_rule(
    function: Callable[..., Any], source: str, name: str | None, options: Any, sites: Any, instances: Any
) -> LaunchRule:
    """Return the rule of the receiving process's module if it is the same, otherwise a new one."""
    qualname, dot, last = function.__qualname__.rpartition(".")
    if dot and last == "_pickled_function":
        known = _find_rule(function.__module__, qualname)
        if known is not None and known._source == source and known._options == options:
            return known
        function.__qualname__ = qualname
    from bascule._pickling import shared_module

    rule = LaunchRule(function, source, name, options, sites, instances)
    rule._make_module = shared_module
    return rule


def _find_rule(module: str, qualname: str) -> LaunchRule | None:
    """Return the launch rule with this name in a loaded module; None if there is none."""
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, LaunchRule) else None
