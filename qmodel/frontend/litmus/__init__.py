"""Litmus tests in C, as herd7 reads them for the Linux kernel: small programs that ask what a machine may do.

`syntax` reads the text, `condition` is what it asks of final states, `primitives` says what may be called, and
`compiler` gives the program.
"""
