// SPDX-License-Identifier: Apache-2.0
// Sobol's quasi-random sequences (1967) in Gray code order (Antonov and Saleev 1979), 32 and 64
// bits, plain or XORed with a constant ("scrambled").
#pragma once

#include "rung_cuda/integers.h"
#include "rung_cuda/numbers.h"

typedef unsigned curandDirectionVectors32_t[32];
typedef unsigned long long curandDirectionVectors64_t[64];

namespace rung::cuda {

constexpr int sobol_dimensions = 20000;
/// Returns the direction vectors of all dimensions, one dimension after another
/// (rung/emulate/runtime/sobol.cpp).
const unsigned* sobol_vectors32();
const unsigned long long* sobol_vectors64();
/// Returns the scrambling constant of a dimension.
unsigned long long sobol_shift(int dimension);

template <class Word, class Vectors>
struct SobolState {
  Word i, x, c;
  Vectors direction_vectors;
};
template <class State>
concept QuasiState = requires(State state) { state.direction_vectors[0]; };

}  // namespace rung::cuda

struct curandStateSobol32 : rung::cuda::SobolState<unsigned, curandDirectionVectors32_t> {};
struct curandStateScrambledSobol32 : rung::cuda::SobolState<unsigned, curandDirectionVectors32_t> {
};
struct curandStateSobol64 : rung::cuda::SobolState<unsigned long long, curandDirectionVectors64_t> {
};
struct curandStateScrambledSobol64
    : rung::cuda::SobolState<unsigned long long, curandDirectionVectors64_t> {};
typedef struct curandStateSobol32 curandStateSobol32_t;
typedef struct curandStateScrambledSobol32 curandStateScrambledSobol32_t;
typedef struct curandStateSobol64 curandStateSobol64_t;
typedef struct curandStateScrambledSobol64 curandStateScrambledSobol64_t;

/// Advances the state by n points. A point is the XOR of the vectors selected by the Gray code of
/// its index.
template <rung::cuda::QuasiState State>
inline void skipahead(unsigned long long n, State* state) {
  state->i += static_cast<decltype(state->i)>(n);
  state->x = state->c;
  int bit = 0;
  for (auto gray = state->i ^ state->i >> 1; gray != 0; gray >>= 1, ++bit) {
    if ((gray & 1) != 0) state->x ^= state->direction_vectors[bit];
  }
}
template <rung::cuda::QuasiState State>
inline auto curand(State* state) {
  const auto result = state->x;
  // Consecutive Gray codes differ in one bit; the sequence wraps after the last point.
  const auto zeros = ~state->i;
  if (zeros != 0) state->x ^= state->direction_vectors[__ffsll(static_cast<long long>(zeros)) - 1];
  ++state->i;
  return result;
}

namespace rung::cuda {
template <class State, class Word>
inline void begin_sobol(const Word* vectors, Word shift, unsigned long long offset, State* state) {
  state->i = 0;
  state->c = shift;
  for (Word& vector : state->direction_vectors) vector = *vectors++;
  skipahead(offset, state);
}
/// Maps a 32- or 64-bit number to a double in (0, 1).
inline double quasi_uniform(unsigned x) { return (x + 0.5) * 0x1p-32; }
inline double quasi_uniform(unsigned long long x) {
  const double u = static_cast<double>(x >> 11) * 0x1p-53;
  return u == 0 ? 0x1p-54 : u;
}
}  // namespace rung::cuda

inline void curand_init(curandDirectionVectors32_t vectors, unsigned offset,
                        curandStateSobol32_t* state) {
  rung::cuda::begin_sobol(vectors, 0u, offset, state);
}
inline void curand_init(curandDirectionVectors32_t vectors, unsigned shift, unsigned offset,
                        curandStateScrambledSobol32_t* state) {
  rung::cuda::begin_sobol(vectors, shift, offset, state);
}
inline void curand_init(curandDirectionVectors64_t vectors, unsigned long long offset,
                        curandStateSobol64_t* state) {
  rung::cuda::begin_sobol(vectors, 0ull, offset, state);
}
inline void curand_init(curandDirectionVectors64_t vectors, unsigned long long shift,
                        unsigned long long offset, curandStateScrambledSobol64_t* state) {
  rung::cuda::begin_sobol(vectors, shift, offset, state);
}

// Distributions. Each number is computed from one uniform number by inversion.
template <rung::cuda::QuasiState State>
inline double curand_uniform_double(State* state) {
  return rung::cuda::quasi_uniform(curand(state));
}
template <rung::cuda::QuasiState State>
inline float curand_uniform(State* state) {
  return static_cast<float>(curand_uniform_double(state));
}
template <rung::cuda::QuasiState State>
inline double curand_normal_double(State* state) {
  return normcdfinv(curand_uniform_double(state));
}
template <rung::cuda::QuasiState State>
inline float curand_normal(State* state) {
  return static_cast<float>(curand_normal_double(state));
}
