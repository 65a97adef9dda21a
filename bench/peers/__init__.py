"""The servers to compare, one a file: how each is configured and started."""
