"""The arithmetic of one attention block, number by number, in the order of the formula.

    patches    E = x W + b                of an image: a vector for each patch, from its pixels
    input      X = E + P                  a vector for each word, and one for its place
    queries    Q = X W_Q                  keys and values likewise; those of head 1
    scores     S = Q Kᵀ                   every q·k, term by term
    scaled     S / √d
    masked     −∞ where a word may not look
    weights    A = softmax(S), row by row
    context    C = A V
    concat     the results of all heads side by side
    output     O = concat W_O
    residual   R = X + O
    norm       (R − μ) / σ · γ + β        after the sum (2017, BERT), or of X before the queries (GPT, T5)

An rnn has no such block; how its decoder looks at the source is told by recurrent.py, in stages of the same names.

The numbers have three sources: what the slides of lecture 001 print, a toy that is small enough to follow by hand, or
a model that someone trained. The last two go through the parts of a real block (modules/block.py), so what is shown is
what a model computes.
"""

from dragoman.seeing.arithmetic.matrices import CAT as CAT
from dragoman.seeing.arithmetic.matrices import Arithmetic as Arithmetic
from dragoman.seeing.arithmetic.matrices import Matrix as Matrix
from dragoman.seeing.arithmetic.matrices import Stage as Stage
from dragoman.seeing.arithmetic.matrices import Terms as Terms
from dragoman.seeing.arithmetic.own import model_arithmetic as model_arithmetic
from dragoman.seeing.arithmetic.patches import patch_arithmetic as patch_arithmetic
from dragoman.seeing.arithmetic.slides import slides_arithmetic as slides_arithmetic
from dragoman.seeing.arithmetic.toy import toy_arithmetic as toy_arithmetic
