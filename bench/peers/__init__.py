"""The compared servers, one a file. Each file has their configurations and starts them."""
