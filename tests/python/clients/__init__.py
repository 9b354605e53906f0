"""Programs of other libraries and Bascule on one emulated device, in one process."""
