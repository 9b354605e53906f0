"""The rows of interface/CONFORMANCE.md as tests."""
