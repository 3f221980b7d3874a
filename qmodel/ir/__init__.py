"""The intermediate representation: what a specification becomes, and all that a pass or an engine ever sees.

`expr` has values and expressions, `program` variables, instructions and control-flow graphs, `interpreter` what they
mean, `text` how they are printed.
"""
