"""Reading specifications: from source text to a program, or to what is wrong with it."""
