"""The commands of `bascule`, one file each; nothing here is imported by `import bascule`."""
