"""The group ``calls``: what the host spends on one call, in every framework.

The programs work on arrays of 16 elements, so that what is measured is everything but the work. All
peers of a framework share a process and take turns; the least of several rounds counts, in CPU time
of the calling thread, not the clock's. ONNX Runtime, which has an environment of its own, and the C
program have processes of their own.

:mod:`bench.host_calls.cases` says what is called, a module ``in_…`` how each framework does it,
:mod:`bench.host_calls.bars` what is asked of the times.
"""
