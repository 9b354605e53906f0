"""Tests of the command line: run, compile, info, cache, and what they share."""
