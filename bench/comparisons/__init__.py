"""The comparisons, one a file. Each has a `COMPARISON`, or a function `run` if there is no load."""
