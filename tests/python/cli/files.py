"""Paths of the samples for the command line."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SAXPY = ROOT / "samples" / "kernels" / "saxpy.cu"
BLOCK_SUM = ROOT / "samples" / "kernels" / "block_sum.cu"
