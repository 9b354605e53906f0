"""The value of a portfolio of European options: a template prices each option, CUB adds them up.

    python samples/black_scholes.py

The kernel is a template: float32 arrays make it a program of floats, float64 arrays one of doubles. CUB's block
reduction comes from the headers of NVIDIA's wheel. The prices are compared with scipy.stats.norm in float64.
"""

import sys

import numpy as np
from scipy.stats import norm

import bascule

KERNEL = r"""
#include <cub/block/block_reduce.cuh>

template <class T>
__device__ T price(T spot, T strike, T years, T volatility, T rate, bool call) {
    const T spread = volatility * sqrt(years);
    const T d1 = (log(spot / strike) + (rate + volatility * volatility / 2) * years) / spread;
    const T d2 = d1 - spread;
    const T paid = strike * exp(-rate * years);
    return call ? spot * normcdf(d1) - paid * normcdf(d2) : paid * normcdf(-d2) - spot * normcdf(-d1);
}

template <class T, int BLOCK = 256>
__global__ void value(bascule::array_view<const T> spot, bascule::array_view<const T> strike,
                      bascule::array_view<const T> years, bascule::array_view<const T> volatility,
                      bascule::array_view<const bool> call, bascule::array_view<const int> count, T rate,
                      bascule::array_view<T> prices, double* total) {
    double sum = 0;
    for (auto i : bascule::grid_stride(prices.size())) {
        prices[i] = price(spot[i], strike[i], years[i], volatility[i], rate, call[i]);
        sum += count[i] * static_cast<double>(prices[i]);
    }
    using Reduce = cub::BlockReduce<double, BLOCK>;
    __shared__ typename Reduce::TempStorage memory;
    const double of_block = Reduce(memory).Sum(sum);
    if (threadIdx.x == 0) atomicAdd(total, of_block);
}
"""
BLOCKS, BLOCK, RATE, OPTIONS = 16, 256, 0.03, 50_000


def portfolio(rng):
    """Spot, strike, years and volatility as float64, whether each is a call, and how many are held (negative: sold)."""
    spot = rng.uniform(20, 200, OPTIONS)
    strike = spot * rng.uniform(0.6, 1.5, OPTIONS)
    call, count = rng.random(OPTIONS) < 0.5, rng.integers(-100, 101, OPTIONS, dtype=np.int32)
    return (spot, strike, rng.uniform(0.05, 3, OPTIONS), rng.uniform(0.1, 0.6, OPTIONS)), call, count


def reference(numbers, call):
    spot, strike, years, volatility = numbers
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (RATE + volatility**2 / 2) * years) / spread
    sign, paid = np.where(call, 1, -1), strike * np.exp(-RATE * years)
    return sign * (spot * norm.cdf(sign * d1) - paid * norm.cdf(sign * (d1 - spread)))


def main():
    print(f"device: {bascule.current_device()!r}")
    numbers, call, count = portfolio(np.random.default_rng(1))
    expected = reference(numbers, call)
    kernel = bascule.compile(KERNEL).value
    failed = []
    for dtype, limit in ((np.float32, 1e-4), (np.float64, 1e-11)):
        arrays = [bascule.to_device(column.astype(dtype)) for column in numbers]
        prices, total = bascule.device_array(OPTIONS, dtype), bascule.zeros(1, np.float64)
        flags, counts = bascule.to_device(call), bascule.to_device(count)
        kernel[BLOCKS, BLOCK](*arrays, flags, counts, RATE, prices, total)

        got = prices.copy_to_host()
        worst = np.abs(got - expected).max()
        # CUB's sum is compared with the sum of the prices that the device computed.
        apart = abs(float(total[0]) / (count * got.astype(np.float64)).sum() - 1)
        right = worst <= limit and apart <= 1e-9  # False for NaN
        print(
            f"{'ok' if right else 'WRONG':6}{got.dtype!s:9}{OPTIONS} options are worth {float(total[0]):,.2f};", end=" "
        )
        print(f"prices differ from SciPy by at most {worst:.1e} (limit {limit:g}), the sum by {apart:.1e}")
        if not right:
            failed.append(str(got.dtype))
    if failed:
        sys.exit(f"black_scholes: {', '.join(failed)} differ from SciPy; see the lines marked WRONG")


if __name__ == "__main__":
    main()
