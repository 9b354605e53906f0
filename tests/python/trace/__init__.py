"""Tests of traces, ranges for profilers, launch hooks, and timelines."""
