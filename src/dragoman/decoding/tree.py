"""A beam search as a tree: every beginning that was kept, every end that was reached, and what was cut, with reasons.

A node is a token after the beginning that its parent stands for. Of the options that were not kept only the best few
of each step are shown, as many as the beam is wide: there are as many more as there are words.
"""

from typing import Literal, NamedTuple

import numpy as np

from dragoman.decoding.beam import Considered, Hypothesis, best_places
from dragoman.decoding.finish import Finish, worth
from dragoman.text.special import SpecialIds

Fate = Literal["kept", "finished", "pruned"]


class Node(NamedTuple):
    parent: int | None  # its place in the list
    step: int  # 0 is <start>
    token: int
    log_prob: float  # of the whole beginning
    score: float  # what it would be worth if it ended here
    state: Fate  # pruned ones were never kept
    reason: str = ""  # why it was pruned, or did not go on
    rank: int | None = None  # of an output, from 1


class Tree:
    """Grows with the search of one sentence: `beam_search(…, tell=tree.grow)`."""

    def __init__(self, special: SpecialIds, way: Finish) -> None:
        self.nodes = [Node(None, 0, special.start, 0.0, 0.0, "kept")]
        self.alive = [0]  # the node of each beginning of the beam
        self.ends, self.way = special.ends, way

    def grow(self, seen: Considered) -> None:
        if not self.alive:  # nothing may be written any more, after a forced <end>
            return
        step = self.nodes[self.alive[0]].step + 1
        for beam, node in enumerate(self.alive):
            ends = zip(self.ends, seen.ended[0, beam].tolist(), seen.scores[0, beam].tolist(), strict=True)
            found = [Node(node, step, end, log_prob, score, "finished") for end, log_prob, score in ends]
            self.nodes += [one for one in found if one.log_prob > -np.inf]
        kept = list(zip(seen.parents[0].tolist(), seen.tokens[0].tolist(), seen.log_probs[0].tolist(), strict=True))
        before = self.alive
        self.prune(seen, step, {(parent, token) for parent, token, _ in kept}, kept[-1][2])
        self.alive = []
        for parent, token, log_prob in kept:
            if log_prob > -np.inf:  # fewer beginnings than beams: at the first step, or after a forced token
                self.alive.append(len(self.nodes))
                score = self.worth(log_prob, step)
                self.nodes.append(Node(before[parent], step, token, log_prob, score, "kept"))

    def prune(self, seen: Considered, step: int, kept: set[tuple[int, int]], worst: float) -> None:
        """The best of what was not kept."""
        options, tokens = seen.candidates.log_probs[0], seen.candidates.tokens[0]
        width, most = options.shape
        for place in best_places(options.reshape(1, -1), 2 * width)[0].tolist():
            beam, rank = divmod(place, most)
            log_prob, token = float(options[beam, rank]), int(tokens[beam, rank])
            if (beam, token) in kept or log_prob == -np.inf or beam >= len(self.alive):
                continue
            reason = f"log p {log_prob:.2f} is below {worst:.2f}, the last of the {width} kept"
            score = self.worth(log_prob, step)
            self.nodes.append(Node(self.alive[beam], step, token, log_prob, score, "pruned", reason))

    def close(self, outputs: list[Hypothesis], longest: int) -> list[Node]:
        """The whole tree when the search is over: outputs get their ranks, the others the reason why they are none."""
        parents = {node.parent for node in self.nodes if node.state != "pruned"}
        ranks = {tuple(output.tokens): rank for rank, output in enumerate(outputs, start=1)}
        worst = min((output.score for output in outputs), default=-np.inf)
        closed = []
        for place, node in enumerate(self.nodes):
            if node.state == "finished":
                shown = () if node.token == self.ends[0] else (node.token,)
                rank = ranks.get((*self.path(node), *shown))
                reason = "" if rank else f"score {node.score:.3f} is below {worst:.3f}, the last of {len(outputs)}"
                node = node._replace(rank=rank, reason=reason)
            elif place in self.alive:
                node = self.leave(node, ranks, worst, longest)
            elif node.state == "kept" and place not in parents:
                node = node._replace(reason="none of its continuations was among the best")
            closed.append(node)
        return closed

    def leave(self, node: Node, ranks: dict[tuple[int, ...], int], worst: float, longest: int) -> Node:
        """One that was alive when the search ended."""
        cut = ranks.get((*self.path(node), node.token))
        if cut:
            return node._replace(state="finished", rank=cut, reason=f"cut at {longest} tokens, the most there may be")
        if node.step >= longest:
            return node._replace(reason=f"no room: {longest} tokens are the most there may be")
        return node._replace(reason=f"the search was over: it could not get above {worst:.3f} any more")

    def worth(self, log_prob: float, length: int) -> float:
        return worth(self.way, log_prob, length)

    def path(self, node: Node) -> tuple[int, ...]:
        """The tokens before it, without <start>."""
        tokens = []
        while node.parent:
            node = self.nodes[node.parent]
            tokens.append(node.token)
        return tuple(reversed(tokens))
