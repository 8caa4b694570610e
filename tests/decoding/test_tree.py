"""The tree of a search says what the search did: its leaves are the outputs, its sums are the model's own."""

import torch

from dragoman.decoding.beam import beam_search
from dragoman.decoding.tree import Tree
from dragoman.text.batches import make_source


def searched(translator, text, width, finish="wu"):
    special = translator.tokenizers.special
    config = translator.search.changed({"beam": width, "nbest": width, "finish": finish}, section="search")
    [source] = translator.tokenizers.source.encode([text])
    tree = Tree(special, config.way())
    state = translator.model.encode(*make_source([source], special))
    longest = config.longest(len(source))
    [outputs] = beam_search(translator.model, state, [longest], special, config, tell=tree.grow)
    return tree, tree.close(outputs, longest), outputs


def test_the_leaves_with_a_rank_are_the_outputs(reverser):
    for source, _ in reverser.held_out[:12]:
        for finish in ("wu", "mean"):
            tree, nodes, outputs = searched(reverser, source, 4, finish)
            leaves = sorted((node for node in nodes if node.rank), key=lambda node: node.rank)
            ended = [tree.path(n) if n.token == tree.end else (*tree.path(n), n.token) for n in leaves]
            assert ended == [tuple(output.tokens) for output in outputs]
            torch.testing.assert_close([leaf.log_prob for leaf in leaves], [output.log_prob for output in outputs])
            torch.testing.assert_close([leaf.score for leaf in leaves], [output.score for output in outputs])


def test_telling_changes_nothing(reverser):
    source, _ = reverser.held_out[3]
    _, _, outputs = searched(reverser, source, 4)
    told = reverser.translate([source], beam=4, nbest=4)[0]
    assert [o.score for o in outputs] == [told.score, *(other.score for other in told.alternatives)]


def test_every_node_is_less_likely_than_its_parent_and_one_step_later(reverser):
    _, nodes, _ = searched(reverser, reverser.held_out[0][0], 4)
    for node in nodes[1:]:
        parent = nodes[node.parent]
        assert node.step == parent.step + 1
        assert node.log_prob <= parent.log_prob + 1e-5
        assert parent.state == "kept"


def test_as_many_are_kept_at_each_step_as_there_are_beams_and_what_is_cut_is_worse(reverser):
    _, nodes, outputs = searched(reverser, reverser.held_out[0][0], 4)
    parents = {node.parent for node in nodes}
    for step in range(2, max(node.step for node in nodes) + 1):
        alive = [n for place, n in enumerate(nodes) if n.step == step and (place in parents or "over" in n.reason)]
        cut = [node for node in nodes if node.step == step and node.state == "pruned" and "below" in node.reason]
        assert len(alive) <= 4
        assert all(node.log_prob <= min(one.log_prob for one in alive) + 1e-6 for node in cut)
    assert all(node.reason for node in nodes if node.state == "pruned")
    assert all(node.reason for node in nodes if node.state == "finished" and node.rank is None)
    assert len([node for node in nodes if node.rank]) == len(outputs)
