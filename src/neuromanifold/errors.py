"""The exceptions, by meaning.

Every error that a caller can provoke derives from `NeuromanifoldError`, and its text says what was
wanted, what came, and what to do. The command line prints that text and exits with code 2.
"""


class NeuromanifoldError(Exception):
    """Base class: something a caller can put right."""


class ArchitectureError(NeuromanifoldError, ValueError):
    """The sizes or words given describe no network."""


class DiagramError(NeuromanifoldError, ValueError):
    """The spaces and tensors given are no diagram of the network they are meant for."""


class WeightsError(NeuromanifoldError, ValueError):
    """The arrays given are not weights of the network they are meant for."""


class FileFormatError(NeuromanifoldError, ValueError):
    """A file is not what its reader was told it is."""


class HypothesisError(NeuromanifoldError, ValueError):
    """A statement was asked for outside its hypotheses."""


class NotCoveredError(NeuromanifoldError, NotImplementedError):
    """The question is well posed, and this library has no answer to it."""


class ArgumentError(NeuromanifoldError, ValueError):
    """An argument lies outside what the function accepts."""


class MissingExtraError(NeuromanifoldError, ImportError):
    """A part of the library was asked for whose packages are not installed."""
