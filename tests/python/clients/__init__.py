"""Other libraries' programs and Bascule on one emulated device, in one process."""
