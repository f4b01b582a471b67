"""The error of nests whose nodes are not those of their schedule."""


class StagedError(Exception):
    """A nest does not have the nodes that its schedule says it has."""
