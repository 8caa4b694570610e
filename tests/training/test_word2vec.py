"""Slopes written by hand are autograd's; what is shared by a block is in the mean what the original draws."""

import pytest
import torch
import torch.nn.functional as F

from dragoman.models.word_vectors import Glove, GloveConfig, Word2Vec, Word2VecConfig
from dragoman.text.cooccurrence import PairBatch
from dragoman.text.neighbours import Blocks
from dragoman.training.glove import GloveLoss
from dragoman.training.rows import add_to_rows, train_rows
from dragoman.training.word2vec import Word2VecLoss

KINDS = ["skip-gram", "cbow"]
V, D, L, K = 9, 4, 6, 7


def small(kind, negatives=3):
    model = Word2Vec(Word2VecConfig(vocabulary=V, width=D, kind=kind, negatives=negatives)).double()
    torch.nn.init.normal_(model.words.weight)
    torch.nn.init.normal_(model.neighbours.weight)
    return model


def blocks(n=3):
    line = torch.tensor([[0, 0, 0, 1, 1, 1], [2, 2, 2, 2, 2, 2], [3, 4, 4, 4, -1, -1]])[:n]
    return Blocks(torch.randint(V, (n, L)), line, torch.randint(1, 4, (n, L)), torch.randint(V, (n, K)), read=n * L)


def near_by_hand(batch, block):
    """Pairs (i, j) of a block where j looks as far as i."""
    line, reach = batch.line[block].tolist(), batch.reach[block].tolist()
    return [
        (i, j)
        for i in range(L)
        for j in range(L)
        if i != j and abs(i - j) <= reach[j] and line[i] == line[j] and line[j] >= 0
    ]


def loss_by_hand(model, batch):
    """The sum as it is written in the docstring, pair by pair, with all K random words at weight k/K."""
    total, count = torch.zeros((), dtype=torch.float64), 0
    x, y = model.words.weight, model.neighbours.weight
    for block in range(len(batch.words)):
        words, share = batch.words[block], model.config.negatives / K
        pairs = near_by_hand(batch, block)
        if model.config.kind == "skip-gram":
            foretold = [(x[words[i]], j) for i, j in pairs]
        else:
            inputs = {j: [i for i, other in pairs if other == j] for _, j in pairs}
            foretold = [(x[words[found]].mean(0), j) for j, found in inputs.items()]
        for vector, j in foretold:
            total = total - F.logsigmoid(vector @ y[words[j]])
            total = total - share * F.logsigmoid(-(y[batch.drawn[block]] @ vector)).sum()
            count += 1
    return total, count


@pytest.mark.parametrize("kind", KINDS)
def test_loss_and_slopes_are_autograds(kind):
    model, batch, rate = small(kind), blocks(), 0.01
    wanted, count = loss_by_hand(model, batch)
    found = Word2VecLoss()(model, batch)
    torch.testing.assert_close(found.nats, wanted.detach())
    assert found.tokens == count
    gradients = torch.autograd.grad(wanted, [model.words.weight, model.neighbours.weight])
    before = [table.detach().clone() for table in (model.words.weight, model.neighbours.weight)]
    with torch.no_grad():
        Word2VecLoss().learn(model, batch, rate)
    for table, old, gradient in zip((model.words.weight, model.neighbours.weight), before, gradients, strict=True):
        torch.testing.assert_close(table.detach(), old - rate * gradient)


def test_slopes_that_are_not_finite_change_nothing():
    model = small("skip-gram").float()
    model.words.weight.data.fill_(float("nan"))
    before = model.neighbours.weight.clone()
    [step] = train_rows(model, [[blocks()]], Word2VecLoss(), rate=lambda _: 0.1)
    assert not step.applied
    assert torch.equal(model.neighbours.weight, before)


def test_a_word_has_neighbours_on_its_line_as_far_as_drawn_and_not_itself():
    batch = blocks()
    near = batch.near()
    for block in range(len(batch.words)):
        assert [tuple(place) for place in near[block].nonzero().tolist()] == near_by_hand(batch, block)


@pytest.mark.parametrize("kind", KINDS)
def test_shared_random_words_cost_in_the_mean_what_words_drawn_for_each_pair_do(kind):
    """The loss is a sum over draws: its mean is that of blocks whose draws are all one word, by that word's chance."""
    model, batch, negatives = small(kind, negatives=2), blocks(1), 2
    chances = torch.arange(1, V + 1) / torch.arange(1, V + 1).sum()
    alike = [batch._replace(drawn=torch.full((1, K), word)) for word in range(V)]
    shared = sum(chance.item() * loss_of(model, one) for chance, one in zip(chances, alike, strict=True))
    x, y, words = model.words.weight.detach(), model.neighbours.weight.detach(), batch.words[0]
    near, apart = near_by_hand(batch, 0), 0.0
    targets = {j: [i for i, other in near if other == j] for _, j in near}
    for i, j in near if kind == "skip-gram" else [([*found], j) for j, found in targets.items()]:
        vector = x[words[i]] if kind == "skip-gram" else x[words[i]].mean(0)
        expected = (chances * -F.logsigmoid(-(y @ vector))).sum()  # of one word drawn for this pair alone
        apart += (-F.logsigmoid(vector @ y[words[j]]) + negatives * expected).item()
    assert shared == pytest.approx(apart, rel=1e-6)


def loss_of(model, batch):
    with torch.no_grad():
        return Word2VecLoss()(model, batch).nats.item()


def test_rows_that_are_there_twice_move_twice():
    table = torch.zeros(4, 2)
    add_to_rows(table, torch.tensor([[1, 3], [1, 0]]), torch.ones(2, 2, 2))
    assert table.tolist() == [[1, 1], [2, 2], [0, 0], [1, 1]]


# ── GloVe ─────────────────────────────────────────────────────────────────────────────────


def counted():
    """Counts of a small vocabulary, some above x_max."""
    counts = torch.rand(V, V, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 15
    counts = counts + counts.T
    words, neighbours = (counts > 12).nonzero(as_tuple=True)
    return counts, PairBatch(words, neighbours, counts[words, neighbours])


def small_glove(width=D):
    model = Glove(GloveConfig(vocabulary=V, width=width, most=20.0)).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def formula(model, counts, batch):
    """J = Σ f(X) (w·w̃ + b + b̃ − log X)², entry by entry, f(x) = (x / x_max)^α below x_max and 1 above."""
    total = torch.zeros((), dtype=torch.float64)
    for i, j in zip(batch.words.tolist(), batch.neighbours.tolist(), strict=True):
        x = counts[i, j]
        f = (x / 20) ** 0.75 if x < 20 else 1.0
        w, other = model.words.weight[i], model.neighbours.weight[j]
        total = total + f * (w @ other + model.word_bias[i] + model.neighbour_bias[j] - x.log()) ** 2
    return total


def test_gloves_objective_is_the_papers_and_its_first_step_is_adagrads():
    model = small_glove()
    counts, batch = counted()
    assert (batch.counts > 20).any()
    assert (batch.counts < 20).any()
    wanted = formula(model, counts, batch)
    torch.testing.assert_close(GloveLoss()(model, batch).nats.detach(), wanted.detach())
    # AdaGrad adds the squares pair by pair, as the original does: one pair's gradient is autograd's, and its step
    one = PairBatch(*(part[3:4] for part in batch))
    gradients = torch.autograd.grad(formula(model, counts, one), list(model.parameters()))
    before = [parameter.detach().clone() for parameter in model.parameters()]
    with torch.no_grad():
        GloveLoss().learn(model, one, 0.05)
    for parameter, old, gradient in zip(model.parameters(), before, gradients, strict=True):
        torch.testing.assert_close(parameter.detach(), old - 0.05 * gradient / (1 + gradient**2).sqrt())


def test_glove_learns_almost_all_that_there_is_to_learn():
    """With as many numbers as there are counts, J can be 0."""
    model = small_glove(width=V)
    counts, batch = counted()
    first = formula(model, counts, batch).item()
    steps = train_rows(model, ([batch] for _ in range(100)), GloveLoss(), rate=lambda _: 0.2)
    for _ in steps:
        pass
    assert formula(model, counts, batch).item() < 1e-3 * first
    torch.testing.assert_close(model.vectors(), (model.words.weight + model.neighbours.weight).detach())


def test_the_number_of_threads_changes_no_bit_and_is_left_as_it_was():
    before, outcomes = torch.get_num_threads(), []
    batches = [[blocks()] for _ in range(5)]
    for threads in (1, 2):
        torch.manual_seed(0)
        model = Word2Vec(Word2VecConfig(vocabulary=V, width=D))
        torch.set_num_threads(threads)
        steps = list(train_rows(model, batches, Word2VecLoss(), rate=lambda n: 1.0 / n, first=3))
        assert torch.get_num_threads() == threads
        torch.set_num_threads(before)
        assert [step.number for step in steps] == [3, 4, 5, 6, 7]
        assert {step.tokens for step in steps} == {batches[0][0].read}
        outcomes.append(model.state_dict())
    assert all(torch.equal(one, other) for one, other in zip(*(o.values() for o in outcomes), strict=True))
