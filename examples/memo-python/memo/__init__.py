"""The memo site."""
