"""`bascule.benchmark`: how long a kernel takes on the device."""

import statistics
from dataclasses import dataclass
from typing import Any

from bascule import _bascule, _errors


@dataclass(frozen=True, repr=False)
class BenchmarkResult:
    """The result of `bascule.benchmark`; `str` gives it in one line. Times are in milliseconds.

    kernel : the function that the arguments chose.
    device : where it ran. emulated : whether that is the emulated device, whose times say nothing about a GPU.
    times : the time of each launch, in order. bytes, flops : bytes and operations of one launch, as passed, or None.
    """

    kernel: str
    device: str
    emulated: bool
    times: tuple[float, ...]
    bytes: float | None = None
    flops: float | None = None

    @property
    def median(self) -> float:
        """The median of the times."""
        return statistics.median(self.times)

    @property
    def min(self) -> float:
        """The shortest of the times."""
        return min(self.times)

    @property
    def max(self) -> float:
        """The longest of the times."""
        return max(self.times)

    @property
    def spread(self) -> float:
        """The interquartile range: how far apart the times of the middle half are."""
        if len(self.times) == 1:
            return 0.0
        first, _, third = statistics.quantiles(self.times, n=4, method="inclusive")
        return third - first

    @property
    def gigabytes_per_second(self) -> float | None:
        """Bandwidth at the median time, in GB/s; None if `bytes` was not given."""
        return self._rate(self.bytes)

    @property
    def gigaflops(self) -> float | None:
        """Arithmetic rate at the median time, in GFLOP/s; None if `flops` was not given."""
        return self._rate(self.flops)

    def _rate(self, amount: float | None) -> float | None:
        if amount is None:
            return None
        return amount / (1e6 * self.median) if self.median > 0 else float("inf")

    def __repr__(self) -> str:
        text = (
            f"{self.kernel}: {_duration(self.median)} median, {_duration(self.min)} min, "
            f"{_duration(self.spread)} spread, {len(self.times)} launches"
        )
        if self.bytes is not None:
            text += f", {self.gigabytes_per_second:,.4g} GB/s"
        if self.flops is not None:
            text += f", {self.gigaflops:,.4g} GFLOP/s"
        text += f"; on {self.device}"
        if self.emulated:
            text += " (these times say nothing about a GPU)"
        return text


def _duration(milliseconds: float) -> str:
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.3g} s"
    return f"{milliseconds:.3g} ms" if milliseconds >= 1 else f"{1000 * milliseconds:.3g} µs"


@_bascule._public
def benchmark(
    kernel: Any,
    *arguments: Any,
    warm_up: int = 10,
    repeat: int = 100,
    bytes: float | None = None,
    flops: float | None = None,
    **keywords: Any,
) -> BenchmarkResult:
    """Measure how long a kernel takes on the device, with an event before and one after each launch.

    The launches are on the stream that a launch would be on anyway (`explain` says which), one after the other, and the
    host waits once, at the end. The host's time for a launch is not measured, unless it is longer than the kernel's.
    Every launch writes the kernel's output arrays. The device's caches are as the previous launch left them.

    Parameters
    ----------
    kernel : Launcher, Kernel or LaunchRule
        `module.scale[grid, block]`, `module.scale.forall(n)`, or a function made by `bascule.kernel`.
    *arguments, **keywords
        The kernel's arguments, as for a launch.
    warm_up : int
        Launches before the first measured one; at least 1, because the first compiles and loads the kernel.
    repeat : int
        Number of measured launches; at least 1.
    bytes, flops : float, optional
        Bytes moved and floating-point operations done by one launch; the result then has GB/s and GFLOP/s.

    Returns
    -------
    BenchmarkResult
        With `median`, `min`, `max`, `spread` and all `times`, in milliseconds.

    Examples
    --------
    >>> result = bascule.benchmark(module.scale[8, 128], x, 2, x.size, bytes=2 * x.nbytes)
    >>> result.median
    >>> print(result)
    """
    if isinstance(kernel, _bascule.BoundLaunch) or not hasattr(kernel, "explain"):
        raise _errors.ArgumentTypeError(
            f"bascule.benchmark takes a kernel with its grid and block, and then the arguments: "
            f"bascule.benchmark(kernel[grid, block], x, y); got {type(kernel).__name__}"
        )
    for name, value in (("warm_up", warm_up), ("repeat", repeat)):
        if not isinstance(value, int) or value < 1:
            raise _errors.ArgumentValueError(
                f"bascule.benchmark: {name} must be an integer of at least 1, got {value!r}"
            )

    for _ in range(warm_up):
        kernel(*arguments, **keywords)
    plan = kernel.explain(*arguments, **keywords)
    stream = plan._stream
    with stream.device:
        events = [(_bascule.event(), _bascule.event()) for _ in range(repeat)]
    stream.synchronize()
    for before, after in events:
        before.record(stream)
        kernel(*arguments, **keywords)
        after.record(stream)
    stream.synchronize()
    times = tuple(before.elapsed(after) for before, after in events)
    device = stream.device
    return BenchmarkResult(plan.kernel, device.name, device.emulated, times, bytes, flops)


BenchmarkResult.__module__ = benchmark.__module__ = "bascule"
