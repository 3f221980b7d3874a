"""The reference engine: breadth-first search, in Python that is generated from the program."""
