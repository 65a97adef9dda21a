"""The proof of a change: what is run, side by side, and how it ended (scripts/run-tests)."""
