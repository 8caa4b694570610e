// Large products of matrices, for training.
#pragma once

#include <cstdint>

namespace dragoman {

struct Starts {                        // what the sums of a row begin at, `step` numbers from one row to the next; null: at zero
    const float *data = nullptr;
    int64_t step = 0;

    Starts at(int64_t row, int64_t column) const { return {data ? data + row * step + column : nullptr, step}; }
};

// C (m n) = starts + op(A) op(B), with k terms: op turns a matrix over or not; all lie row by row
void multiply(bool turn_a, bool turn_b, int m, int n, int k, const float *a, const float *b, float *c, const Starts &starts,
              int threads);

}  // namespace dragoman
