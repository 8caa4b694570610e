"""Words with their neighbours, and counts of pairs: what is drawn, how often, and that nothing is lost."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.text.cooccurrence import PairOrder, count_pairs, open_counts
from dragoman.text.neighbours import LENGTH, BlockedText, chance_to_stay, count_words
from dragoman.text.special import SpecialIds

SPECIAL = SpecialIds()
FIRST = 4  # the first id that is a word
V = 40


def text_of(size, seed=0, vocabulary=V):
    """Words by Zipf's law, lines of about twelve."""
    random = np.random.default_rng(seed)
    chances = 1 / np.arange(1, vocabulary - FIRST + 1)
    ids = FIRST + random.choice(vocabulary - FIRST, size, p=chances / chances.sum())
    ids[random.random(size) < 1 / 12] = SPECIAL.end
    ids[random.random(size) < 0.02] = SPECIAL.unknown
    return ids.astype(np.uint16)


def order_of(ids, *, sample=0.0, reach=5, tokens=4096, seed=1):
    return BlockedText(ids, count_words(ids, V, SPECIAL), SPECIAL, reach=reach, sample=sample, tokens=tokens, seed=seed)


def whole_epoch(order, epoch=0):
    return [order.batch(epoch, k) for k in range(len(order))]


def real(batch):
    return batch.words[batch.line >= 0]


def test_a_batch_is_a_function_of_seed_epoch_and_place():
    ids = text_of(20_000)
    a, b = order_of(ids, sample=1e-2), order_of(ids, sample=1e-2)
    for epoch, k in ((0, 3), (1, 0), (0, 3)):
        assert all(torch.equal(x, y) for x, y in zip(a.batch(epoch, k)[:4], b.batch(epoch, k)[:4], strict=True))
    assert not torch.equal(a.batch(0, 0).drawn, a.batch(1, 0).drawn)
    assert sum(batch.read for batch in whole_epoch(a)) == len(ids)


def test_without_thinning_out_every_word_of_the_text_is_there_in_its_order():
    ids = text_of(10_000)
    found = np.concatenate([real(batch).numpy() for batch in whole_epoch(order_of(ids))])
    assert found.tolist() == [i for i in ids.tolist() if i >= FIRST]


def test_words_are_thinned_out_by_their_share_of_the_text():
    """A word of share f stays with probability √(t/f) + t/f, at most 1."""
    ids, sample = text_of(400_000), 5e-3
    counts = count_words(ids, V, SPECIAL)
    left = Counter(np.concatenate([real(b).numpy() for b in whole_epoch(order_of(ids, sample=sample))]).tolist())
    for word in range(FIRST, V):
        share = counts[word] / counts.sum()
        chance = min(1.0, (sample / share) ** 0.5 + sample / share)
        spread = 4 * (counts[word] * chance * (1 - chance)) ** 0.5
        assert abs(left[word] - counts[word] * chance) <= spread
    assert chance_to_stay(counts, 0.0)[:FIRST].tolist() == [0] * FIRST


def test_random_words_are_drawn_by_their_count_to_the_power_of_three_quarters():
    ids = text_of(200_000)
    counts = count_words(ids, V, SPECIAL)
    drawn = np.concatenate([b.drawn.numpy().ravel() for b in whole_epoch(order_of(ids))])
    wanted = counts**0.75 / (counts**0.75).sum()
    found = np.bincount(drawn, minlength=V)
    assert found[:FIRST].sum() == 0
    spread = 4.5 * np.sqrt(len(drawn) * wanted * (1 - wanted))
    assert (np.abs(found - len(drawn) * wanted) <= spread).all()


def test_the_window_is_dynamic_so_a_neighbour_at_distance_d_is_looked_at_in_one_of_reach_cases_less():
    """All numbers 1 … reach are equally likely: distance d is within reach with probability (reach − d + 1) / reach."""
    ids = np.full(LENGTH * 3000, FIRST, np.uint16)
    ids[::2] = FIRST + 1
    [batch] = whole_epoch(order_of(ids, tokens=len(ids)))
    near = batch.near().float()
    for distance in range(1, 7):
        share = near.diagonal(distance, dim1=1, dim2=2).mean().item()
        assert share == pytest.approx(max(0, 6 - distance) / 5, abs=0.01)


# ── counts of pairs ───────────────────────────────────────────────────────────────────────


def by_hand(ids, reach):
    """Σ 1/d over all pairs on a line that are d ≤ reach words apart, both ways."""
    counts, line = Counter(), []
    for i in [*ids, SPECIAL.end]:
        if i == SPECIAL.end:
            for a in range(len(line)):
                for b in range(a + 1, min(len(line), a + reach + 1)):
                    counts[line[a], line[b]] += 1 / (b - a)
                    counts[line[b], line[a]] += 1 / (b - a)
            line = []
        elif i >= FIRST:
            line.append(i)
    return counts


def counted(folder):
    found = Counter()
    for part in ("train", "valid"):
        keys, values = open_counts(folder, part)
        for key, value in zip(keys.tolist(), values.tolist(), strict=True):
            assert divmod(key, V) not in found
            found[divmod(key, V)] = value
    return found


@given(
    ids=st.lists(
        st.sampled_from([SPECIAL.end, SPECIAL.end, SPECIAL.unknown, *range(FIRST, FIRST + 8)]), min_size=1, max_size=120
    ),
    reach=st.integers(1, 6),
    held=st.sampled_from([1, 7, 40, 1000]),
)
@settings(max_examples=60, deadline=None)
def test_counts_are_those_of_a_count_by_hand_however_little_is_held_in_memory(ids, reach, held, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    count_pairs(np.array(ids, np.uint16), V, SPECIAL, reach, folder, held=held)
    found, wanted = counted(folder), by_hand(ids, reach)
    assert found.keys() == wanted.keys()
    assert all(found[pair] == pytest.approx(wanted[pair], rel=1e-5) for pair in wanted)
    assert {path.name for path in folder.iterdir()} == {
        "index.json", "train.keys", "train.counts", "valid.keys", "valid.counts"
    }  # fmt: skip


def test_some_pairs_are_held_back_both_ways_round(tmp_path):
    ids = text_of(30_000, vocabulary=V)
    found = count_pairs(ids, V, SPECIAL, 5, tmp_path, held=5000)
    held = {divmod(key, V) for key in open_counts(tmp_path, "valid").keys.tolist()}
    assert 0 < found["valid"] < 0.05 * found["train"]
    assert {(b, a) for a, b in held} == held


def test_every_pair_comes_once_an_epoch_in_an_order_of_its_own(tmp_path):
    ids = text_of(5000)
    count_pairs(ids, V, SPECIAL, 5, tmp_path)
    pairs = open_counts(tmp_path, "train")
    order = PairOrder(pairs, V, 64, seed=2)
    epochs = [
        [int(w) * V + int(n) for k in range(len(order)) for w, n in zip(*order.batch(epoch, k)[:2], strict=True)]
        for epoch in (0, 1)
    ]
    assert sorted(epochs[0]) == sorted(epochs[1]) == pairs.keys.tolist()
    assert epochs[0] != epochs[1]
    batch = order.batch(0, 1)
    values = dict(zip(pairs.keys.tolist(), pairs.counts.tolist(), strict=True))
    assert batch.counts.tolist() == [values[int(w) * V + int(n)] for w, n in zip(*batch[:2], strict=True)]


def test_damaged_counts_are_one_sentence(tmp_path):
    count_pairs(text_of(500), V, SPECIAL, 5, tmp_path)
    keys = tmp_path / "train.keys"
    keys.write_bytes(keys.read_bytes()[:-8])
    with pytest.raises(DataError, match="damaged; begin anew"):
        open_counts(tmp_path, "train")
