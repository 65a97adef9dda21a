"""The proof of a change: what is run, side by side, and what came of it (scripts/run-tests)."""
