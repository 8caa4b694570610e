"""A checkpoint is all that a run needs to go on as if it had never stopped.

    weights.safetensors     the model's parameters, and what its norms have counted
    optimizer.safetensors   the optimizer's own numbers, each under its parameter's name; where there is an optimizer
    carried.safetensors     what goes on from one batch into the next, where a model has such a state
    state.json              the step, the best score so far, and whatever else the job keeps
    manifest.json           sha256 of each; written last

Random numbers need no saving: dropout is seeded by the step, and batches are a function of (seed, epoch, k).
"""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from dragoman.errors import DataError
from dragoman.runs.files import MANIFEST, check_folder, read_json, recover_folder, write_folder
from dragoman.runs.scrutiny import are_numbers
from dragoman.runs.weights import load_weights, read_tensors, shared_as, weights_of, whole

SCRATCH = ".scratch-"  # a folder for a moment, within a run's
GOING = ".gone"  # a checkpoint that is being removed
ASIDE = ".aside"  # of a checkpoint that no longer counts
NAME = re.compile(r"step-\d{8,12}")
NEEDED = ("weights.safetensors", "state.json")  # of every one


def checkpoint_folder(run: Path, step: int) -> Path:
    return run / "checkpoints" / f"step-{step:08d}"


def save_checkpoint(
    run: Path,
    step: int,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None,
    state: dict[str, Any],
    carried: list[Tensor] | None = None,
) -> Path:
    """All of it at once; whoever is killed in the middle of this has the checkpoint before."""
    parts = {
        "weights": weights_of(model),
        "optimizer": optimizer_tensors(model, optimizer) if optimizer else {},
        "carried": {f"{i:04d}": tensor.contiguous() for i, tensor in enumerate(carried or [])},
    }

    def fill(ready: Path) -> None:
        for name, tensors in parts.items():
            if tensors or (name == "optimizer" and optimizer):
                save_file(tensors, ready / f"{name}.safetensors")
        (ready / "state.json").write_text(json.dumps({"step": step, **state}))

    size = sum(tensor.nbytes for tensors in parts.values() for tensor in tensors.values())
    path = checkpoint_folder(run, step)
    write_folder(path, fill, size)
    return path


def recover_checkpoints(run: Path) -> None:
    """Those that a kill between two renames left as `.old`; only for who holds the lock."""
    for old in (run / "checkpoints").glob("step-*.old"):
        recover_folder(old.with_suffix(""))


def remove_leftovers(run: Path) -> None:
    """What a kill in the middle of a save, or of the timing, left behind; only for who holds the lock."""
    recover_checkpoints(run)
    for path in [*(run / "checkpoints").glob("step-*"), *run.glob(f"{SCRATCH}*")]:
        if path.suffix in (".new", ".old", GOING) or path.name.startswith(SCRATCH):
            shutil.rmtree(path, ignore_errors=True)


def checkpoints(run: Path) -> list[Path]:
    """Newest first; half-written ones have other names and do not count."""
    found = [path for path in (run / "checkpoints").glob("step-*") if NAME.fullmatch(path.name)]
    return sorted(found, key=step_of, reverse=True)


def check_checkpoint(path: Path) -> None:
    """Its files are those of its manifest, and what each has is among them."""
    check_folder(path)
    listed = read_json(path / MANIFEST)
    for name in NEEDED:
        if name not in listed:
            raise DataError("E-RUN-02", f"{path} is damaged: {name} is not in its manifest")


def newest_whole_checkpoint(run: Path) -> tuple[Path | None, list[str]]:
    """The newest checkpoint that is not damaged, and a sentence about each that is."""
    said, there = list[str](), checkpoints(run)
    for number, path in enumerate(there, start=1):
        try:
            check_checkpoint(path)
        except DataError as problem:
            then = "going back to the one before" if number < len(there) else "there is none before it"
            said.append(f"{problem.sentence}; {then}")
        else:
            return path, said
    return None, said


def set_aside_others(run: Path, step: int) -> None:
    """What is damaged, or lies beyond this step, counts no more: else it would stand for a checkpoint to go on from,
    and good ones would be removed for its sake. It is kept under another name."""
    for path in checkpoints(run):
        if step_of(path) > step or not is_whole(path):
            aside = path.with_name(path.name + ASIDE)
            with suppress(OSError):  # where others own the folder, the next save says so
                shutil.rmtree(aside, ignore_errors=True)
                path.rename(aside)


def last_good_checkpoint(run: Path) -> Path | None:
    """The newest whole one that was not saved amid steps without a finite gradient, nor of weights that had grown
    beyond all measure: the next steps would have none."""
    return next((path for path in checkpoints(run) if is_whole(path) and is_sound(path)), None)


def is_sound(path: Path) -> bool:
    try:
        refused = read_json(path / "state.json").get("refused")
        return not refused and are_numbers(read_tensors(path / "weights.safetensors"))
    except DataError:  # though its manifest vouches for it
        return False


def is_whole(path: Path) -> bool:
    try:
        check_checkpoint(path)
    except DataError:
        return False
    return True


def load_checkpoint(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer | None) -> dict[str, Any]:
    load_weights(model, read_tensors(path / "weights.safetensors"), path)
    if optimizer:
        load_optimizer(model, optimizer, read_tensors(path / "optimizer.safetensors"), path)
    state = read_json(path / "state.json")
    if state.get("step") != step_of(path) or not isinstance(state.get("settings", {}), dict):
        raise DataError("E-RUN-02", f"{path} is damaged: its state.json is not that of this step")
    return state


def load_carried(path: Path) -> list[Tensor]:
    file = path / "carried.safetensors"
    return [tensor for _, tensor in sorted(read_tensors(file).items())] if file.exists() else []


def step_of(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def planned_checkpoints(run: Path, every: int, last: int) -> list[Path]:
    """Those that a run without interruptions would have too, newest first."""
    return [path for path in checkpoints(run) if step_of(path) % every == 0 or step_of(path) == last]


def remove_old_checkpoints(run: Path, saved: Path, keep: list[Path]) -> list[str]:
    """Those before the one just saved, but for these; a sentence about each that cannot be removed, as where another
    user wrote it. Under another name first: what a kill leaves of one is no damaged checkpoint."""
    said = []
    for path in checkpoints(run):
        if path not in keep and step_of(path) < step_of(saved):
            going = path.with_name(path.name + GOING)
            try:
                path.rename(going)
                shutil.rmtree(going)
            except OSError as problem:
                left = going if going.exists() else path
                said.append(f"{left} cannot be removed ({problem.strerror}); the run goes on, see who owns it")
    return said


def average_weights(paths: list[Path]) -> dict[str, Tensor]:
    """The mean of several checkpoints' weights, parameter by parameter."""
    total: dict[str, Tensor] = {}
    kinds: dict[str, torch.dtype] = {}
    for path in paths:
        for name, tensor in read_tensors(path / "weights.safetensors").items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
            kinds[name] = tensor.dtype
    return {name: (tensor / len(paths)).to(kinds[name]) for name, tensor in total.items()}


# ── the optimizer's numbers ───────────────────────────────────────────────────────────────


def parameter_states(
    model: nn.Module, optimizer: torch.optim.Optimizer
) -> Iterator[tuple[str, Tensor, dict[str, Any]]]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            yield names[id(parameter)], parameter, optimizer.state[parameter]


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"{name}/{key}": whole(tensor).clone()
        for name, _, state in parameter_states(model, optimizer)
        for key, tensor in state.items()
        if isinstance(tensor, Tensor)
    }


def load_optimizer(
    model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], folder: Path
) -> None:
    optimizer.state.clear()  # a run that goes back may know more than the checkpoint did
    left = dict(tensors)
    for name, parameter, state in parameter_states(model, optimizer):
        prefix = f"{name}/"
        for key in [key for key in tensors if key.startswith(prefix)]:
            tensor = left.pop(key)
            if tensor.shape not in (parameter.shape, torch.Size(), torch.Size([1])):
                raise DataError("E-RUN-06", f"the optimizer in {folder} is of another model: {key:.100} does not fit")
            state[key.removeprefix(prefix)] = shared_as(parameter, tensor.clone())
    if left:
        raise DataError("E-RUN-06", f"the optimizer in {folder} is of another model: {min(left):.100} is left over")
