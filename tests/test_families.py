"""The names that are known without torch are those of the models."""

import pytest

from dragoman import families, models
from dragoman.errors import UsageError


def test_the_names_are_those_of_the_models():
    assert {task: tuple(known) for task, known in models.FAMILIES.items()} == families.FAMILIES
    presets = {tuple(family.presets) for known in models.FAMILIES.values() for family in known.values()}
    assert presets == {families.PRESETS}


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
