"""Starts the program with faults by plan, visits it, and checks what it promises in spite of them."""
