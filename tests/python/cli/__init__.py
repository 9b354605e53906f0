"""What the compiler side of the package does: signatures, diagnostics, options."""
