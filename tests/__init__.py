"""The tests of qmodel."""
