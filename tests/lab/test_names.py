"""A model's name says what it is; a mistake in it is named before anything is trained."""

import pytest

from dragoman.errors import UsageError
from dragoman.lab.names import PARTS, read_name, read_names
from dragoman.models import FAMILIES


def test_a_family_alone_has_no_settings():
    assert read_name("transformer")[1:] == ("transformer", "", {}, "translate")


def test_presets_and_settings_follow_the_family():
    found = read_name("transformer+tiny:width=64:heads=2")
    assert (found.preset, found.settings) == ("tiny", {"width": "64", "heads": "2"})
    assert found.config().width == 64


def test_a_list_keeps_its_order_and_forgives_spaces():
    assert [model.name for model in read_names("transformer+tiny, transformer,")] == ["transformer+tiny", "transformer"]


@pytest.mark.parametrize(
    "names", ["transformer,transformer:width=512", "rnn,rnn:dropout=0.2", "transformer+tiny,transformer+tiny:width=512"]
)
def test_what_a_plan_would_choose_is_not_what_a_name_says(names):
    assert len(read_names(names)) == 2


def test_a_folder_holds_nothing_that_a_path_should_not():
    assert read_name("transformer+tiny:width=64").folder == "transformer+tiny_width=64"
    assert "/" not in read_name("transformer")._replace(name="x:y=../../z").folder


MISTAKES = {
    "transfomer": "there is no family 'transfomer'; did you mean transformer?",
    "transformer+tniy": "the family transformer has no part 'tniy'; did you mean tiny?",
    "transformer+dance": "the family transformer has no part 'dance'; known: base, base-deep, small, small-deep, tiny",
    "transformer+tiny+small": "sets preset to both tiny and small; choose one",
    "transformer:width": "'width' is no setting; write transformer:key=value",
    "transformer:widht=3": "there is no setting model.widht; did you mean model.width?",
    "transformer:width=wide": "model.width = 'wide' cannot be",
    "transformer:width=8:width=9": "sets width to both 8 and 9",
    "transformer,transformer": "transformer is named twice; name each model once",
    "rnn+tiny,rnn+tiny:width=128": "rnn+tiny and rnn+tiny:width=128 are equal",
    "rnn,rnn+none": "rnn and rnn+none are equal",
    " , ": "names no model; give some, such as",
}


@pytest.mark.parametrize(("names", "words"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_is_named_with_the_way_out(names, words):
    with pytest.raises(UsageError) as problem:
        read_names(names)
    assert words in problem.value.sentence


def test_every_part_of_the_recurrent_family_is_a_setting_it_has():
    for part, (key, value) in PARTS["translate"]["rnn"].items():
        extra = "+dot" if part == "input-feeding" else ""
        assert getattr(read_name(f"rnn{extra}+{part}").config(), key) == value


def test_every_cell_and_attention_of_the_recurrent_family_has_its_part():
    from typing import get_args

    fields = FAMILIES["translate"]["rnn"].config.model_fields
    known = {*get_args(fields["cell"].annotation), *get_args(fields["attention"].annotation)}
    assert known <= PARTS["translate"]["rnn"].keys()


def test_parts_combine_and_contradictions_are_refused():
    found = read_name("rnn+gru+dot+one-way+input-feeding:width=64")
    assert found.settings == {"cell": "gru", "attention": "dot", "two_way": False, "input_feeding": True, "width": "64"}
    with pytest.raises(UsageError, match="sets cell to both gru and lstm"):
        read_name("rnn+gru+lstm")
    with pytest.raises(UsageError, match="did you mean additive"):
        read_name("rnn+aditive")
    with pytest.raises(UsageError, match=r"rnn and rnn\+none are equal"):
        read_names("rnn,rnn+none")
