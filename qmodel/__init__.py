"""qmodel: a model checker for the lock-free and half-locked algorithms of the Linux packet scheduler."""

__version__ = "0.1.0"
