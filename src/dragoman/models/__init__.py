"""The model families, by what they are for. To add one: write its file, then add its line to FAMILIES,
and its name to `dragoman.families`."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from torch import nn

from dragoman.config import Settings
from dragoman.families import refuse_unknown_family, refuse_unknown_task
from dragoman.models import (
    bag,
    bert,
    bert_classifier,
    cnn,
    gpt,
    marian,
    mlp,
    rnn,
    rnn_classifier,
    rnn_writer,
    t5,
    transformer,
    vit,
    word_vectors,
)


class Family(NamedTuple):
    config: type[Settings]
    model: type[nn.Module]
    presets: dict[str, dict[str, Any]]
    one_table: bool = False  # of vectors, for all that is read and written: source and target share their tokens
    trained: bool = True  # else it is made from another, or comes from elsewhere
    reads: Literal["text", "images"] = "text"


def image_family(config: type[Settings], model: type[nn.Module], presets: dict[str, dict[str, Any]]) -> Family:
    return Family(config, model, presets, reads="images")


T5 = Family(t5.T5Config, t5.T5, t5.PRESETS, one_table=True)
FAMILIES: dict[str, dict[str, Family]] = {
    "translate": {
        "transformer": Family(transformer.TransformerConfig, transformer.Transformer, transformer.PRESETS),
        "rnn": Family(rnn.RnnConfig, rnn.Rnn, rnn.PRESETS),
        "t5": T5,
        "marian": Family(marian.MarianConfig, marian.Marian, marian.PRESETS),
    },
    "write": {
        "gpt": Family(gpt.GptConfig, gpt.Gpt, gpt.PRESETS),
        "rnn": Family(rnn_writer.RnnWriterConfig, rnn_writer.RnnWriter, rnn_writer.PRESETS),
    },
    "fill": {"bert": Family(bert.BertConfig, bert.Bert, bert.PRESETS)},
    "embed": {
        "word2vec": Family(word_vectors.Word2VecConfig, word_vectors.Word2Vec, word_vectors.PRESETS),
        "glove": Family(word_vectors.GloveConfig, word_vectors.Glove, word_vectors.PRESETS),
        "bert": Family(bert.BertVectorsConfig, bert.BertVectors, bert.PRESETS, trained=False),
        "vit": Family(vit.VitVectorsConfig, vit.VitVectors, vit.PRESETS, trained=False, reads="images"),
    },
    "restore": {"t5": T5},
    "classify": {
        "bag": Family(bag.BagConfig, bag.Bag, bag.PRESETS),
        "rnn": Family(rnn_classifier.RnnClassifierConfig, rnn_classifier.RnnClassifier, rnn_classifier.PRESETS),
        "bert": Family(bert_classifier.BertClassifierConfig, bert_classifier.BertClassifier, bert_classifier.PRESETS),
        "mlp": image_family(mlp.MlpClassifierConfig, mlp.Mlp, mlp.PRESETS),
        "cnn": image_family(cnn.CnnClassifierConfig, cnn.Cnn, cnn.PRESETS),
        "vit": image_family(vit.VitClassifierConfig, vit.Vit, vit.PRESETS),
    },
    "regress": {
        "mlp": image_family(mlp.MlpRegressorConfig, mlp.Mlp, mlp.PRESETS),
        "cnn": image_family(cnn.CnnRegressorConfig, cnn.Cnn, cnn.PRESETS),
        "vit": image_family(vit.VitRegressorConfig, vit.Vit, vit.PRESETS),
    },
    "segment": {
        "cnn": image_family(cnn.CnnSegmenterConfig, cnn.CnnSegmenter, cnn.PRESETS),
        "vit": image_family(vit.VitSegmenterConfig, vit.VitSegmenter, vit.PRESETS),
    },
}

USUAL = {  # the family, where nobody said
    "translate": "transformer", "write": "gpt", "fill": "bert", "restore": "t5", "classify": "rnn",
    "embed": "word2vec", "regress": "cnn", "segment": "cnn",
}  # fmt: skip
USUAL_FOR_IMAGES = "cnn"
ANY_SIZE = 2**8 * 3**2 * 5 * 7 * 11  # pixels; patches of any usual size divide it
SIZES_FROM_DATA: dict[str, Any] = {  # what no person sets, with values for reading settings before the data is known
    "vocabulary": 8, "source_vocabulary": 8, "target_vocabulary": 8, "classes": ("one", "other"), "numbers": ("one",),
    "size": (ANY_SIZE, ANY_SIZE), "channels": 1,
}  # fmt: skip


def settings_without_data(family: Family, told: Mapping[str, Any]) -> Settings:
    """The settings as far as they are told, to find what is wrong with them before any work is done."""
    needed = {name: size for name, size in SIZES_FROM_DATA.items() if name in family.config.model_fields}
    return family.config.read({**needed, **told}, section="model")


def build(config: Settings) -> nn.Module:
    return find_family(*task_and_family_of(config)).model(config)


def task_and_family_of(config: Settings) -> tuple[str, str]:
    """What a model of these settings is for. A T5 that learned to restore text is from then on a translator."""
    return next(
        (task, name)
        for task, families in FAMILIES.items()
        for name, family in families.items()
        if type(config) is family.config
    )


def to_dict(config: Settings) -> dict[str, Any]:
    task, family = task_and_family_of(config)
    return {"task": task, "family": family, **config.model_dump()}


def from_dict(values: Mapping[str, Any]) -> Settings:
    settings = dict(values)
    task, family = settings.pop("task", "translate"), settings.pop("family")
    return find_family(task, family).config.read(settings, section="model")


def find_family(task: str, family: str) -> Family:
    refuse_unknown_task(task)
    refuse_unknown_family(family, task)
    return FAMILIES[task][family]
