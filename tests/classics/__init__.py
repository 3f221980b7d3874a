"""Concurrent programs whose verdicts are known, written in the specification language."""
