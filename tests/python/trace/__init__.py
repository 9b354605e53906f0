"""Traces, ranges for profilers, launch hooks, and timelines."""
