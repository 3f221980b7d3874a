"""The native engine: breadth-first search in C, which is generated from the program and compiled where it runs."""
