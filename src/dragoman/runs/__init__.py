"""A run is a folder that any command can open, and that the same `train` command goes on with."""
