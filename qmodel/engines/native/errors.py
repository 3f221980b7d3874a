"""What the native engine gives up with, so that another engine can be taken."""


class NativeError(Exception):
    """The native engine cannot do what was asked: why, for a person."""


class BuildError(NativeError):
    """A library that could not be made."""


class UnsuitableError(NativeError):
    """A program that C cannot run as it is."""
