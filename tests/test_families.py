"""The names that are known without torch are those of the models."""

import pytest

from dragoman import families, models
from dragoman.errors import UsageError


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
