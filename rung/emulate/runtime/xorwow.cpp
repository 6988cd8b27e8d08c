// SPDX-License-Identifier: Apache-2.0
// Skip-ahead for XORWOW. A step is linear over the 160 bits of the state, so n steps are the n-th
// power of a 160 x 160 matrix, computed by repeated squaring.
#include <array>
#include <mutex>
#include <vector>

#include "rung/emulate/runtime/api.hpp"

#pragma GCC visibility push(default)
#include "rung_cuda/random_engines.h"
#pragma GCC visibility pop

namespace rung::cuda {
namespace {

constexpr int bits = 160;
using XorwowState = std::array<unsigned, 5>;
/// Matrix over GF(2): column i is the successor of the state that has only bit i set.
using Matrix = std::array<XorwowState, bits>;

XorwowState advanced(const Matrix& matrix, const XorwowState& state) {
  XorwowState result{};
  for (int i = 0; i < bits; ++i) {
    if ((state[static_cast<std::size_t>(i / 32)] >> (i % 32) & 1) == 0) continue;
    for (std::size_t word = 0; word < 5; ++word) {
      result[word] ^= matrix[static_cast<std::size_t>(i)][word];
    }
  }
  return result;
}

Matrix one_step() {
  Matrix matrix;
  for (int i = 0; i < bits; ++i) {
    curandStateXORWOW state{};
    state.v[i / 32] = 1u << (i % 32);
    curand(&state);
    for (std::size_t word = 0; word < 5; ++word) {
      matrix[static_cast<std::size_t>(i)][word] = state.v[word];
    }
  }
  return matrix;
}

/// Returns the matrix of 2^power steps.
const Matrix& step(int power) {
  static std::mutex mutex;
  static auto& known = *new std::vector<Matrix>;
  const std::lock_guard lock(mutex);
  if (known.capacity() == 0) known.reserve(160);  // keeps references valid
  while (static_cast<int>(known.size()) <= power) {
    if (known.empty()) {
      known.push_back(one_step());
      continue;
    }
    const Matrix& last = known.back();
    Matrix square;
    for (std::size_t i = 0; i < bits; ++i) square[i] = advanced(last, last[i]);
    known.push_back(square);
  }
  return known[static_cast<std::size_t>(power)];
}

}  // namespace

void skip_xorwow(unsigned* v, unsigned long long count, int power) {
  XorwowState state{v[0], v[1], v[2], v[3], v[4]};
  for (; count != 0; count >>= 1, ++power) {
    if ((count & 1) != 0) state = advanced(step(power), state);
  }
  for (std::size_t word = 0; word < 5; ++word) v[word] = state[word];
}

}  // namespace rung::cuda
