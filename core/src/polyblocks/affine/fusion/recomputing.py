"""Whether what a nest computes is computed again rather than written to memory and read."""

from __future__ import annotations

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.cost import rates
from polyblocks.affine.rewrites.inlining import Candidate, Producer
from polyblocks.target import TargetDescription


def against_memory(
    candidate: Candidate, producer: Producer, times: int, more: float, target: TargetDescription
) -> dict[str, float] | None:
    """Seconds of both; None if a rate is missing.

    Args:
        candidate: the buffer, and who reads it.
        producer: what computes it.
        times: elements that all consumers would compute.
        more: operations of gathers that there would be besides, for each element of the buffer.
        target: whose rates these are.
    """
    extra = max(0, times - candidate.buffer.numel)
    slots = cost.operations(producer.body) * extra + more * candidate.buffer.numel
    recompute = rates.compute_seconds(target, slots)
    # Written (which reads the line first) and read once by each consumer; neighbours that
    # are read again come from a cache.
    trips = 2 + len(candidate.consumers)
    nbytes = candidate.buffer.nbytes
    traffic = rates.traffic_seconds(target, trips * nbytes, nbytes)
    if recompute is None or traffic is None:
        return None
    return {"recompute_seconds": recompute, "traffic_seconds": traffic}
