"""ViT: the reader with its head for classes, or alone; and how its images were prepared."""

from collections.abc import Collection
from typing import Any

from dragoman.config import Settings
from dragoman.errors import DataError
from dragoman.interop.huggingface import ACTIVATIONS, Folder, Foreign, read_json
from dragoman.interop.tables import Moved, Table, Unused, flat, prefixed
from dragoman.models.vit import VitClassifierConfig, VitConfig, VitVectorsConfig

RESAMPLING = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}  # as Pillow numbers them
BLOCK = "reader.encoder.blocks.*"
READER: Table = {
    "embeddings.cls_token": flat("reader.class_token"),
    "embeddings.position_embeddings": Moved(("reader.positions.table.weight",), lambda tensor: [tensor.squeeze(0)]),
    # a convolution whose stride is its kernel is one matrix for the pixels of a patch
    "embeddings.patch_embeddings.projection.weight": Moved(
        ("reader.to_vector.weight",), lambda tensor: [tensor.flatten(1)]
    ),
    "embeddings.patch_embeddings.projection.bias": "reader.to_vector.bias",
    "encoder.layer.*.attention.attention.query.*": f"{BLOCK}.self_attention.to_query.*",
    "encoder.layer.*.attention.attention.key.*": f"{BLOCK}.self_attention.to_key.*",
    "encoder.layer.*.attention.attention.value.*": f"{BLOCK}.self_attention.to_value.*",
    "encoder.layer.*.attention.output.dense.*": f"{BLOCK}.self_attention.to_output.*",
    "encoder.layer.*.layernorm_before.*": f"{BLOCK}.around_self.norm.*",
    "encoder.layer.*.intermediate.dense.*": f"{BLOCK}.feedforward.0.*",
    "encoder.layer.*.output.dense.*": f"{BLOCK}.feedforward.2.*",
    "encoder.layer.*.layernorm_after.*": f"{BLOCK}.around_feedforward.norm.*",
    "layernorm.*": "reader.encoder.final_norm.*",
    "embeddings.mask_token": Unused("the token for hidden patches"),
    "pooler.dense.*": Unused("the pooler, which no head here uses"),
}


def table(folder: Folder, names: Collection[str]) -> Table:
    prefix = "vit." if any(name.startswith("vit.") for name in names) else ""
    head: Table = {"classifier.*": "to_answers.*"} if folder.architecture == "ViTForImageClassification" else {}
    return {**prefixed(READER, prefix), **head}


def config(folder: Folder) -> VitConfig:
    """What is absent in config.json is as the reference has it."""
    folder.one_of("qkv_bias", True)
    c = folder.config
    patch = pair(c.get("patch_size", 16))
    if patch[0] != patch[1]:
        raise DataError("E-IMP-02", f"{folder.path} has patches of {patch}, and dragoman knows square ones")
    settings = {
        "size": pair(c.get("image_size", 224)),
        "channels": c.get("num_channels", 3),
        "patch": patch[0],
        "width": c.get("hidden_size", 768),
        "heads": c.get("num_attention_heads", 12),
        "layers": c.get("num_hidden_layers", 12),
        "hidden": c.get("intermediate_size", 3072),
        "dropout": c.get("hidden_dropout_prob", 0.0),
        "attention_dropout": c.get("attention_probs_dropout_prob", 0.0),
        "activation": ACTIVATIONS[folder.one_of("hidden_act", *ACTIVATIONS)],
        "epsilon": c.get("layer_norm_eps", 1e-12),
    }
    if folder.architecture == "ViTModel":
        return folder.settings(VitVectorsConfig, settings)
    folder.one_of("problem_type", None, "single_label_classification")
    named = c.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    classes = [str(named[number]) for number in sorted(named, key=int)]
    return folder.settings(VitClassifierConfig, {**settings, "classes": classes})


def pair(size: Any) -> tuple[int, int]:
    """Height and width; one number is both."""
    return (int(size), int(size)) if not isinstance(size, list | tuple) else (int(size[0]), int(size[1]))


def about(folder: Folder, settings: Settings) -> dict[str, Any]:
    """The levels of its images: theirs are (byte · factor − mean) / deviation, and ours divide by 255 first."""
    c = read_json(folder.path / "preprocessor_config.json", {})
    if c.get("do_center_crop"):
        raise DataError("E-IMP-02", f"{folder.path} crops its images (do_center_crop); dragoman resizes them only")
    if c.get("resample", 2) not in RESAMPLING:
        known = " or ".join(map(str, RESAMPLING))
        raise DataError("E-IMP-02", f"{folder.path} has resample = {c['resample']} and dragoman knows {known}")
    channels: int = settings.model_dump()["channels"]
    factor = 255 * (c.get("rescale_factor", 1 / 255) if c.get("do_rescale", True) else 1.0)
    normal = c.get("do_normalize", True)
    mean = c.get("image_mean", [0.5] * channels) if normal else [0.0] * channels
    spread = c.get("image_std", [0.5] * channels) if normal else [1.0] * channels
    levels = {"mean": [m / factor for m in mean], "deviation": [s / factor for s in spread]}
    return {"images": {**levels, "resampling": RESAMPLING[c.get("resample", 2)]}}


VIT = Foreign(config, table, None, about)
