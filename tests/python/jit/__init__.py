"""Tests of the package's compiler side: signatures, diagnostics, options."""
