"""Views in kernels: any strides, masks, and what debug mode says of an index out of bounds."""
