"""The tree of a search says what the search did: its leaves are the outputs, its sums are the model's own."""

import pytest
import torch

from dragoman.decoding.beam import beam_search
from dragoman.decoding.tree import Tree
from dragoman.text.batches import make_source


def searched(translator, text, width, finish="wu", also_end=()):
    special = translator.tokenizers.special.changed({"also_end": also_end}, section="special")
    config = translator.search.changed({"beam": width, "nbest": width, "finish": finish}, section="search")
    [source] = translator.tokenizers.source.encode([text])
    tree = Tree(special, config.way())
    state = translator.model.encode(*make_source([source], special))
    longest = config.longest(len(source))
    [outputs] = beam_search(translator.model, state, [longest], special, config, tell=tree.grow)
    return tree, tree.close(outputs, longest), outputs


@pytest.mark.parametrize("letters", ["", "ae"])
def test_the_leaves_with_a_rank_are_the_outputs(reverser, letters):
    """Also where an output ends at some letters, too: then they are its last ones, and stand nowhere before."""
    others = [ids[-1] for ids in reverser.tokenizers.target.encode(list(letters))]
    for source, _ in reverser.held_out[:12]:
        for finish in ("wu", "mean"):
            tree, nodes, outputs = searched(reverser, source, 4, finish, others)
            assert all(token not in others for output in outputs for token in output.tokens[:-1])
            leaves = sorted((node for node in nodes if node.rank), key=lambda node: node.rank)
            ended = [tree.path(n) if n.token == tree.ends[0] else (*tree.path(n), n.token) for n in leaves]
            assert ended == [tuple(output.tokens) for output in outputs]
            torch.testing.assert_close([leaf.log_prob for leaf in leaves], [output.log_prob for output in outputs])
            torch.testing.assert_close([leaf.score for leaf in leaves], [output.score for output in outputs])


def test_telling_changes_nothing(reverser):
    source, _ = reverser.held_out[3]
    _, _, outputs = searched(reverser, source, 4)
    told = reverser.translate([source], beam=4, nbest=4)[0]
    assert [o.score for o in outputs] == pytest.approx(
        [told.score, *(other.score for other in told.alternatives)], abs=1e-4
    )


def test_every_node_is_less_likely_than_its_parent_and_one_step_later(reverser):
    _, nodes, _ = searched(reverser, reverser.held_out[0][0], 4)
    for node in nodes[1:]:
        parent = nodes[node.parent]
        assert node.step == parent.step + 1
        assert node.log_prob <= parent.log_prob + 1e-5
        assert parent.state == "kept"


def test_as_many_are_kept_at_each_step_as_there_are_beams_and_what_is_cut_is_worse(reverser):
    _, nodes, outputs = searched(reverser, reverser.held_out[0][0], 4)
    last = max(node.step for node in nodes)
    for step in range(2, last + 1):
        kept = [node for node in nodes if node.step == step and node.state == "kept"]
        cut = [node for node in nodes if node.step == step and node.state == "pruned"]
        assert len(kept) == 4
        assert all(node.log_prob <= min(one.log_prob for one in kept) + 1e-6 for node in cut)
    assert len([node for node in nodes if node.rank]) == len(outputs)


def test_whatever_did_not_go_on_says_why(reverser):
    """The search is over for those alive at its last step only; one left before that had no continuation kept."""
    left_before = 0
    for source, _ in reverser.held_out[:12]:
        _, nodes, _ = searched(reverser, source, 4)
        last = max(node.step for node in nodes if node.state == "kept")
        parents = {node.parent for node in nodes if node.state != "pruned"}
        for place, node in enumerate(nodes):
            if node.state == "pruned" or (node.state == "finished" and node.rank is None):
                assert "below" in node.reason
            elif node.state == "kept" and place not in parents:
                assert ("over" in node.reason or "no room" in node.reason) == (node.step == last)
                left_before += "continuations" in node.reason
            elif node.state == "kept":
                assert node.reason == ""
    assert left_before > 0
