"""The benchmarks' kernel in Triton, which reads a kernel's text from its file. Imported only if Triton is installed."""

import triton
import triton.language as tl


@triton.jit
def arrays3(x, y, out, a, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + i, a + tl.load(x + i) + tl.load(y + i))
