"""The comparisons, one a file. Each has a `COMPARISON` or, where there is no load, a `run`."""
