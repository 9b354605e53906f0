"""The commands of `bascule`, one file each. `import bascule` does not import them."""
