"""Custom calls for operations that StableHLO lacks."""

#: Target of a ``stablehlo.custom_call`` that checks: of two arrays of one shape it gives the first
#: if all elements of the second, truth values, are true. Otherwise the program fails with
#: ``backend_config`` as the message.
CHECK = "polyblocks.check"

#: Target of a ``stablehlo.custom_call`` that is an algorithm of
#: :data:`polyblocks.algorithms.expand.ALGORITHMS`, whose name is ``backend_config``.
ALGORITHM = "polyblocks.algorithm"

#: Attribute of a ``stablehlo.convert`` of floats to integers: what is out of range does not
#: saturate; see :func:`polyblocks.stablehlo.convert.convert`.
WRAPS = "polyblocks.wraps"

#: Attribute of a ``stablehlo.gather``: indices that are out of range are not clamped; the program
#: fails.
CHECKED = "polyblocks.checked"
