"""The names that are known without torch are those of the models."""

import pytest

import dragoman
from dragoman import families, models
from dragoman.errors import UsageError
from dragoman.models.shapes import shapes_only


def test_the_names_are_those_of_the_models():
    assert {task: tuple(known) for task, known in models.FAMILIES.items()} == families.FAMILIES
    for known in models.FAMILIES.values():
        assert {name: tuple(family.presets) for name, family in known.items()} == {
            name: families.presets_of(name) for name in known
        }


def test_a_deep_preset_is_refused_where_there_is_none():
    families.refuse_unknown_preset("small-deep")  # the family is not known yet
    with pytest.raises(UsageError, match=r"rnn.*has no preset 'small-deep'.*tiny, small, base"):
        families.refuse_unknown_preset("small-deep", "rnn")


@pytest.mark.parametrize(
    ("family", "task", "words"),
    [
        ("transfomer", "", "did you mean transformer?"),
        ("gtp", "write", "did you mean gpt?"),
        ("gru", "translate", "it is a cell: --family rnn --set model.cell=gru"),
        ("bert", "translate", "learns to fill and to embed and to classify, not to translate"),
        ("zzz", "fill", "known: bert"),
    ],
)
def test_a_wrong_family_is_answered_with_the_way_out(family, task, words):
    with pytest.raises(UsageError) as caught:
        families.refuse_unknown_family(family, task)
    assert words in caught.value.sentence


@pytest.mark.parametrize("task", ["", "translate"])
def test_a_right_family_is_not_refused(task):
    families.refuse_unknown_family("rnn", task)


EVERY_FAMILY = [(task, name) for task, known in models.FAMILIES.items() for name in known]


@pytest.mark.parametrize(("task", "name"), EVERY_FAMILY)
def test_shapes_are_known_before_there_are_numbers(task, name):
    family = models.FAMILIES[task][name]
    config = models.settings_without_data(family, {**family.presets.get("tiny", {}), **small_images(family)})
    with shapes_only():
        empty = models.build(config)
    full = models.build(config)
    assert {name: tensor.shape for name, tensor in empty.state_dict().items()} == {
        name: tensor.shape for name, tensor in full.state_dict().items()
    }
    assert all(parameter.is_meta for parameter in empty.parameters())
    assert not any(parameter.is_meta for parameter in full.parameters())


def small_images(family):
    return {"size": (28, 28)} if family.reads == "images" else {}


def test_public_names_are_there_and_are_shown():
    assert {*dragoman.__all__} <= {*dir(dragoman)}
    for name in dragoman.__all__:
        assert getattr(dragoman, name).__name__ in (name, "load", "look", "train")
