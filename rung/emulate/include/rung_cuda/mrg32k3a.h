// SPDX-License-Identifier: Apache-2.0
// MRG32k3a, L'Ecuyer's combined multiple recursive generator (1999): two recurrences of order 3,
// each modulo a prime below 2^32. Numbers are skipped by powers of the recurrences' matrices.
#pragma once

#include "rung_cuda/random_engines.h"

/// `s1` and `s2`: the last three numbers of both recurrences, the latest last.
struct curandStateMRG32k3a {
  unsigned s1[3], s2[3];
  int boxmuller_flag, boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
};
typedef struct curandStateMRG32k3a curandStateMRG32k3a_t;

namespace rung::cuda {

constexpr unsigned long long mrg_modulus1 = 4294967087u, mrg_modulus2 = 4294944443u;

struct MrgMatrix {
  unsigned long long at[3][3];
};
constexpr MrgMatrix mrg_step1 = {{{0, 1, 0}, {0, 0, 1}, {mrg_modulus1 - 810728, 1403580, 0}}};
constexpr MrgMatrix mrg_step2 = {{{0, 1, 0}, {0, 0, 1}, {mrg_modulus2 - 1370589, 0, 527612}}};

inline MrgMatrix mrg_product(const MrgMatrix& a, const MrgMatrix& b, unsigned long long modulus) {
  MrgMatrix c = {};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 3; ++k) c.at[i][j] += a.at[i][k] * b.at[k][j] % modulus;
      c.at[i][j] %= modulus;
    }
  }
  return c;
}

/// Advances one recurrence by `count` * 2^`power` numbers.
inline void skip_mrg(unsigned* state, MrgMatrix step, unsigned long long modulus,
                     unsigned long long count, int power) {
  for (int i = 0; i < power; ++i) step = mrg_product(step, step, modulus);
  for (; count != 0; count >>= 1) {
    if ((count & 1) != 0) {
      unsigned long long next[3] = {};
      for (int i = 0; i < 3; ++i) {
        for (int k = 0; k < 3; ++k) next[i] += step.at[i][k] * state[k] % modulus;
      }
      for (int i = 0; i < 3; ++i) state[i] = static_cast<unsigned>(next[i] % modulus);
    }
    step = mrg_product(step, step, modulus);
  }
}

/// Returns the next number, from 1 to the first modulus.
inline unsigned long long next_mrg(curandStateMRG32k3a_t* s) {
  skip_mrg(s->s1, mrg_step1, mrg_modulus1, 1, 0);
  skip_mrg(s->s2, mrg_step2, mrg_modulus2, 1, 0);
  const unsigned long long first = s->s1[2], second = s->s2[2];
  return first > second ? first - second : first + mrg_modulus1 - second;
}

}  // namespace rung::cuda

inline void skipahead(unsigned long long n, curandStateMRG32k3a_t* s) {
  rung::cuda::skip_mrg(s->s1, rung::cuda::mrg_step1, rung::cuda::mrg_modulus1, n, 0);
  rung::cuda::skip_mrg(s->s2, rung::cuda::mrg_step2, rung::cuda::mrg_modulus2, n, 0);
}
inline void skipahead_subsequence(unsigned long long n, curandStateMRG32k3a_t* s) {
  rung::cuda::skip_mrg(s->s1, rung::cuda::mrg_step1, rung::cuda::mrg_modulus1, n, 76);
  rung::cuda::skip_mrg(s->s2, rung::cuda::mrg_step2, rung::cuda::mrg_modulus2, n, 76);
}
inline void skipahead_sequence(unsigned long long n, curandStateMRG32k3a_t* s) {
  rung::cuda::skip_mrg(s->s1, rung::cuda::mrg_step1, rung::cuda::mrg_modulus1, n, 127);
  rung::cuda::skip_mrg(s->s2, rung::cuda::mrg_step2, rung::cuda::mrg_modulus2, n, 127);
}
inline void curand_init(unsigned long long seed, unsigned long long subsequence,
                        unsigned long long offset, curandStateMRG32k3a_t* s) {
  *s = {};
  // Multiplies L'Ecuyer's initial state by the seed's halves, as cuRAND does.
  const unsigned long long low = (seed & 0xffffffffu) ^ 0x55555555u;
  const unsigned long long high = (seed >> 32) ^ 0xaaaaaaaau;
  for (int i = 0; i < 3; ++i) {
    const unsigned long long factor1 = seed == 0 ? 1 : i % 2 == 0 ? low : high;
    const unsigned long long factor2 = seed == 0 ? 1 : i % 2 == 0 ? high : low;
    s->s1[i] = static_cast<unsigned>(12345 * factor1 % rung::cuda::mrg_modulus1);
    s->s2[i] = static_cast<unsigned>(12345 * factor2 % rung::cuda::mrg_modulus2);
  }
  skipahead_subsequence(subsequence, s);
  skipahead(offset, s);
}

/// Returns a number in (0, 1], scaled by the inverse of the first modulus.
inline double curand_uniform_double(curandStateMRG32k3a_t* s) {
  return static_cast<double>(rung::cuda::next_mrg(s)) * 2.3283065498378288e-10;
}
inline float curand_uniform(curandStateMRG32k3a_t* s) {
  return static_cast<float>(curand_uniform_double(s));
}
/// Returns a 32-bit number, scaled from the range of the generator's numbers to 2^32 - 1.
inline unsigned curand(curandStateMRG32k3a_t* s) {
  return static_cast<unsigned>(static_cast<double>(rung::cuda::next_mrg(s)) * 1.000000048662);
}
