"""A model in shards (FSDP2): each worker holds a part of every weight, of its gradient and of what the optimizer keeps.

A block is put together for the moment in which it computes, and its gradient is added up into parts right after. So a
worker needs the whole of one block at a time instead of the whole model, its gradient and twice as much for Adam.

What is saved is whole: a run may go on in shards, without them, and back. To validate and to save, the first worker
puts the whole model together, in its ordinary memory.
"""

from torch import nn

from dragoman.errors import UsageError
from dragoman.modules.block import Block
from dragoman.training.settings import TrainingConfig

ENTRANCES = ("states", "write")  # by which objectives enter a model instead of `forward`: the first that it has


def shard(model: nn.Module) -> None:
    """Share the parameters out among all workers; afterwards each of them is a part that knows the whole."""
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method  # takes a second

    for block in [module for module in model.modules() if isinstance(module, Block)]:
        if block.source_attention is not None:  # its `remember` is called from outside the block
            fully_shard(block.source_attention)
            register_fsdp_forward_method(block.source_attention, "remember")
        fully_shard(block)
    fully_shard(model, reshard_after_forward=False)  # the objective reads the table of scores after `states`
    entrance = next((name for name in ENTRANCES if hasattr(model, name)), None)
    if entrance:
        register_fsdp_forward_method(model, entrance)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)  # sums, not means of means
            module.set_force_sum_reduction_for_comms(True)


def refuse_odd_sharding(training: TrainingConfig) -> None:
    if training.sharding and training.optimizer == "muon":
        raise UsageError(
            "E-USE-22", "muon needs whole matrices and training.sharding leaves none; set training.optimizer = adamw"
        )
    if training.sharding and training.reproducible:
        raise UsageError(
            "E-USE-22", "shards are added up in an order of their own; leave out --reproducible or training.sharding"
        )
