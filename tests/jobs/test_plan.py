"""Settings are derived from the corpus; what was asked for is taken as it is."""

import random

import pytest
import torch

from dragoman.errors import UsageError
from dragoman.jobs import plan
from dragoman.jobs.prepare import Survey
from dragoman.jobs.request import Request, gather_settings
from dragoman.models.transformer import TransformerConfig
from dragoman.text.corpus import Pair
from dragoman.text.generated import generate
from dragoman.text.tokenizer import TokenizerConfig


def survey_of(pairs, total=None):
    pairs = list(pairs)
    return Survey(total or len(pairs), [Pair(*pair) for pair in pairs], 0.0)


def prose(count, alphabet="abcdefghijklmnop"):
    rng = random.Random(0)
    words = ["".join(rng.choices(alphabet, k=rng.randint(2, 9))) for _ in range(5000)]
    return [" ".join(rng.choices(words, k=rng.randint(3, 20))) for _ in range(count)]


def test_more_text_gets_more_subwords():
    sizes = [plan.vocabulary_for(pairs) for pairs in (1000, 10_000, 100_000, 1_000_000, 100_000_000)]
    assert sizes == sorted(sizes)
    assert 1000 <= sizes[0] < sizes[1] < 4000
    assert 5000 < sizes[2] < 9000
    assert sizes[-1] == 24_000


def test_sentences_get_subwords_words_of_a_closed_list_get_words_and_spellings_get_characters():
    text = prose(400)
    commands = [f"{verb} {place} twice" for verb in ("walk", "look", "run") for place in ("left", "right")] * 50
    spellings = [f"word{n}" for n in range(300)]
    assert plan.best_kind(text) == "unigram"
    assert plan.best_kind(commands) == "words"
    assert plan.best_kind(spellings) == "characters"
    assert plan.best_kind([line.replace(" ", "") for line in text]) == "unigram"  # as Chinese is written


def test_a_joint_vocabulary_is_for_sides_that_share_their_letters():
    latin, greek = prose(300), prose(300, "αβγδεζηθικλμνξοπ")
    assert plan.plan_tokenizer(survey_of(zip(latin, latin[::-1], strict=True)), {}).joint
    assert not plan.plan_tokenizer(survey_of(zip(latin, greek, strict=True)), {}).joint


def test_the_sides_may_need_different_kinds():
    chosen = plan.plan_tokenizer(survey_of(generate("dates", count=3000, seed=0, held_out=1)[0]), {})
    assert (chosen.kind, chosen.target_kind, chosen.joint) == ("unigram", "characters", False)


def test_what_is_asked_for_is_taken():
    pairs = list(zip(prose(300), prose(300), strict=True))
    chosen = plan.plan_tokenizer(survey_of(pairs), {"kind": "bpe", "vocabulary": "777", "joint": "false"})
    assert (chosen.kind, chosen.vocabulary, chosen.joint) == ("bpe", 777, False)


def test_a_machine_is_measured_in_believable_numbers():
    assert 1e9 < plan.measure_machine(2, 0.05) < 1e13


def test_work_is_six_operations_for_every_parameter_a_token_passes():
    config = TransformerConfig(source_vocabulary=100, target_vocabulary=100, width=64, heads=2, layers=2, hidden=128)
    from dragoman.models import build

    matrices = [p.numel() for name, p in build(config).named_parameters() if p.ndim == 2]
    assert plan.work_per_token(config) == 6 * sum(matrices)


def test_rates_fall_with_the_width_and_for_fine_tuning():
    assert plan.rate_for("muon", 512, False) < plan.rate_for("muon", 128, False)
    assert plan.rate_for("muon", 128, True) < plan.rate_for("muon", 128, False)


# ── settings ──────────────────────────────────────────────────────────────────────────────


def test_flags_go_before_the_environment_and_that_before_the_file(tmp_path):
    file = tmp_path / "my.toml"
    file.write_text("[model]\nwidth = 64\nheads = 2\nlayers = 1\n")
    environment = {"DRAGOMAN_MODEL_WIDTH": "96", "DRAGOMAN_MODEL_HEADS": "3", "HOME": "x"}
    found = gather_settings(["model.width=128"], file, environment)
    assert found == {"model": {"width": "128", "heads": "3", "layers": 1}}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("DRAGOMAN_MODLE_WIDTH", "did you mean DRAGOMAN_MODEL_WIDTH?"),
        ("DRAGOMAN_MINUTE", "did you mean DRAGOMAN_MINUTES?"),
        ("DRAGOMAN_MODEL", "did you mean DRAGOMAN_MODEL_KEY?"),
        ("DRAGOMAN_QQQ", "known: SECTION_KEY (data, images, tokenizer, model, training, search), minutes, epochs"),
    ],
)
def test_a_variable_that_is_no_setting_is_answered_with_the_nearest(name, hint):
    with pytest.raises(UsageError) as caught:
        gather_settings([], None, {name: "3", "HOME": "x"})
    assert caught.value.id == "E-SET-06"
    assert caught.value.sentence.startswith(f"{name} in the environment is no setting; {hint}")


def test_variables_that_are_read_are_taken():
    environment = {"DRAGOMAN_ENGINE": "plain", "DRAGOMAN_MINUTES": "3", "DRAGOMAN_STEPS": "9"}
    assert gather_settings([], None, environment) == {"training": {"steps": "9"}}
    assert gather_settings(["training.steps=4"], None, environment) == {"training": {"steps": "4"}}


def test_special_ids_are_settings_too():
    found = gather_settings(["tokenizer.special.start=2", "tokenizer.kind=words"], None, {})
    assert found == {"tokenizer": {"special": {"start": "2"}, "kind": "words"}}
    assert TokenizerConfig.read(found["tokenizer"], section="tokenizer").special.start == 2


def test_kinds_that_one_vocabulary_cannot_hold_are_refused_or_parted():
    pairs = list(zip(prose(300), prose(300), strict=True))
    assert not plan.plan_tokenizer(survey_of(pairs), {"target_kind": "characters"}).joint
    with pytest.raises(UsageError, match="one vocabulary cannot hold unigram and characters; set joint = false"):
        TokenizerConfig.read({"kind": "unigram", "target_kind": "characters", "joint": True}, section="tokenizer")


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        ("model.widht=3", None),
        ("modle.width=3", "there is no section 'modle' of settings; did you mean model?"),
        ("width", "--set width cannot be read; write --set section.key=value"),
    ],
)
def test_a_setting_that_cannot_be_is_answered_with_the_nearest(item, sentence):
    if sentence is None:
        with pytest.raises(UsageError, match=r"there is no setting model.widht; did you mean model.width\?"):
            TransformerConfig.read({"source_vocabulary": 9, "target_vocabulary": 9, "widht": 3}, section="model")
    else:
        with pytest.raises(UsageError) as caught:
            gather_settings([item], None, {})
        assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"width": 10, "heads": 4}, "width 10 cannot be split into 4 equal heads"),
        ({"width": 9, "heads": 3}, "width 9 is odd"),
        ({"target_vocabulary": 8}, "one table cannot serve 9 source and 8 target tokens"),
        ({"dropout": 1.5}, "model.dropout = 1.5 cannot be"),
        ({"width": "many"}, "model.width = 'many' cannot be"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_the_reason(values, words):
    with pytest.raises(UsageError, match=words):
        TransformerConfig.read({"source_vocabulary": 9, "target_vocabulary": 9, **values}, section="model")


def test_threads_are_what_was_asked_for():
    from dragoman.jobs.machine import use_threads

    before = torch.get_num_threads()
    assert use_threads(1) == 1
    assert use_threads(before) == before
    with pytest.raises(UsageError, match="--threads 0 cannot be"):
        use_threads(0)


def test_steps_that_were_asked_for_tell_what_is_seen_and_no_machine_does():
    fixed = {"source_vocabulary": 2000, "target_vocabulary": 2000, "tied": "all"}

    def shape(steps, work, **training):
        request = Request.read(
            {"corpora": ["a", "b"], "family": "transformer", "settings": {"training": {"steps": steps, **training}}},
            section="train",
        )
        budget = plan.Budget(400_000, work, plan.tokens_asked(request, 400_000))
        config = plan.plan_model("translate", fixed, request, budget)
        return config.width, config.dropout

    for steps in (20, 1000, 30_000):
        assert shape(steps, 1e9) == shape(steps, 1e18) == shape(str(steps), 1e12)
    assert shape(20, 1e18)[0] < shape(1000, 1e18)[0]
    assert shape(1000, 1e12, tokens_per_step=200)[0] < shape(1000, 1e12)[0]
    assert shape(1000, 1e12)[1] < shape(30_000, 1e12)[1]  # dropout, for what is seen again and again


def test_texts_with_labels_count_their_steps_too():
    request = Request.read({"corpora": ["a"], "settings": {"training": {"steps": 50}}}, section="train")
    assert plan.tokens_asked(request, 10**6, plan.CLASSIFYING) == 50 * 1024
    assert plan.tokens_asked(request, 700, plan.CLASSIFYING) == 50 * 700  # a step is no more than the corpus
