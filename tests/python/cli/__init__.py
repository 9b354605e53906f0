"""Tests of the command line: each command, and what they share."""
