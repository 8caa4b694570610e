"""How long a step takes with W workers, and how much memory each needs: arithmetic, to be set beside what is measured.

    compute      T₁ · M/W rounded up                 T₁ a micro-batch's time, M of them a step; whole ones are dealt
    all-reduce   2 (W−1)/W · 4P / b  +  2 (W−1) · l  a ring: every worker sends and takes 2 (W−1)/W of 4P bytes, in
                                                     2 (W−1) turns of l seconds each
    optimizer    T₂                                  every worker takes the same step; in shards a Wth part of it

    step         compute + all-reduce + optimizer    nothing is hidden behind anything else: it is so here
    throughput   tokens / step                       efficiency = throughput / (W · that of one worker)

Memory of a worker: weights, gradient and what the optimizer keeps, 4 P (1 + 1 + k) bytes and a row of 4 P more to send;
in shards a Wth part of it, and one block whole.
"""

from math import ceil
from typing import NamedTuple

FLOAT = 4  # bytes


class Job(NamedTuple):
    parameters: int
    micro_batches: int  # of a step, over all workers
    tokens: int  # of a step, over all workers
    micro_batch_seconds: float  # forwards and backwards, by one worker
    optimizer_seconds: float
    kept: int = 2  # numbers that the optimizer keeps for each parameter: Adam's two means
    largest_block: int = 0  # parameters that are whole at a time, in shards


class Network(NamedTuple):
    bytes_per_second: float
    latency: float  # seconds


class Predicted(NamedTuple):
    seconds: float  # of a step
    compute: float
    all_reduce: float
    tokens_per_second: float
    efficiency: float  # 1 where W workers do W times the work of one
    gigabytes: float  # of each worker, activations apart


def predict(job: Job, workers: int, network: Network, *, sharded: bool = False) -> Predicted:
    """A step of this job with so many workers."""
    compute = job.micro_batch_seconds * ceil(job.micro_batches / workers)
    exchange = all_reduce_seconds(FLOAT * job.parameters, workers, network) * (1.5 if sharded else 1.0)
    seconds = compute + exchange + job.optimizer_seconds / (workers if sharded else 1)
    alone = job.micro_batch_seconds * job.micro_batches + job.optimizer_seconds
    return Predicted(
        seconds=seconds,
        compute=compute,
        all_reduce=exchange,
        tokens_per_second=job.tokens / seconds,
        efficiency=alone / (workers * seconds),
        gigabytes=memory(job, workers, sharded=sharded) / 1e9,
    )


def all_reduce_seconds(size: int, workers: int, network: Network) -> float:
    """A ring. In shards weights are gathered twice and gradients scattered once: three halves of it."""
    return 2 * (workers - 1) / workers * size / network.bytes_per_second + 2 * (workers - 1) * network.latency


def memory(job: Job, workers: int, *, sharded: bool) -> int:
    """Bytes of weights, gradients, optimizer and what is sent."""
    if sharded:
        return FLOAT * (ceil(job.parameters * (2 + job.kept) / workers) + 2 * job.largest_block)
    return FLOAT * job.parameters * (3 + job.kept)
