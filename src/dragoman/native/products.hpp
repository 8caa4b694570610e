// Large products of matrices, for training.
#pragma once

namespace dragoman {

// C (m n) = op(A) op(B) (+ C), with k terms: op turns a matrix over or not; all lie row by row
void multiply(bool turn_a, bool turn_b, int m, int n, int k, const float *a, const float *b, float *c, bool add, int threads);

}  // namespace dragoman
