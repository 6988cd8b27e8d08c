// SPDX-License-Identifier: Apache-2.0
// The random engines Philox and XORWOW, and conversions of their numbers to floats.
#pragma once

#include "rung_cuda/integers.h"
#include "rung_cuda/numbers.h"

struct curandStatePhilox4_32_10 {
  uint4 ctr;
  uint4 output;
  uint2 key;
  unsigned STATE;
  int boxmuller_flag, boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
};
struct curandStateXORWOW {
  unsigned d, v[5];
  int boxmuller_flag, boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
};
typedef struct curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
typedef struct curandStateXORWOW curandStateXORWOW_t;
typedef struct curandStateXORWOW curandState_t;
typedef struct curandStateXORWOW curandState;

namespace rung::cuda {

/// Returns a number in (0, 1]: never 0, so that its logarithm is finite.
inline float uniform_float(unsigned x) {
  return static_cast<float>(x) * 2.3283064e-10f + 2.3283064e-10f / 2.0f;
}
inline double uniform_double(unsigned low, unsigned high) {
  const auto bits = static_cast<unsigned long long>(low) ^ static_cast<unsigned long long>(high)
                                                               << (53 - 32);
  return static_cast<double>(bits) * 1.1102230246251565e-16 + 1.1102230246251565e-16 / 2;
}
/// Returns two normally distributed numbers, by the Box-Muller transform.
inline float2 normal_pair(unsigned x, unsigned y) {
  const float u = uniform_float(x);
  const float v =
      static_cast<float>(y) * (2.3283064e-10f * 6.2831855f) + 2.3283064e-10f * 6.2831855f / 2;
  const float radius = sqrtf(-2 * logf(u));
  return {radius * sinf(v), radius * cosf(v)};
}

/// Computes the ten rounds of Philox.
inline uint4 philox(uint4 counter, uint2 key) {
  for (int round = 0; round < 10; ++round) {
    const unsigned high0 = __umulhi(0xD2511F53u, counter.x), low0 = 0xD2511F53u * counter.x;
    const unsigned high1 = __umulhi(0xCD9E8D57u, counter.z), low1 = 0xCD9E8D57u * counter.z;
    counter = {high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0};
    key.x += 0x9E3779B9u;
    key.y += 0xBB67AE85u;
  }
  return counter;
}
inline void add_to_counter(unsigned* low, unsigned* high, unsigned long long n) {
  const unsigned long long sum = (static_cast<unsigned long long>(*high) << 32 | *low) + n;
  *low = static_cast<unsigned>(sum);
  *high = static_cast<unsigned>(sum >> 32);
}

/// Advances an XORWOW state by `count` * 2^`power` numbers, using powers of its transition matrix.
void skip_xorwow(unsigned* v, unsigned long long count, int power);

}  // namespace rung::cuda

inline void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10_t* s) {
  rung::cuda::add_to_counter(&s->ctr.z, &s->ctr.w, n);
  s->output = rung::cuda::philox(s->ctr, s->key);
}
inline void skipahead(unsigned long long n, curandStatePhilox4_32_10_t* s) {
  s->STATE += static_cast<unsigned>(n & 3);
  n /= 4;
  if (s->STATE > 3) {
    ++n;
    s->STATE -= 4;
  }
  const unsigned before = s->ctr.y;
  const unsigned low = s->ctr.x;
  rung::cuda::add_to_counter(&s->ctr.x, &s->ctr.y, n);
  const bool carry = s->ctr.y < before || (s->ctr.y == before && s->ctr.x < low);
  if (carry) rung::cuda::add_to_counter(&s->ctr.z, &s->ctr.w, 1);
  s->output = rung::cuda::philox(s->ctr, s->key);
}
inline void curand_init(unsigned long long seed, unsigned long long sequence,
                        unsigned long long offset, curandStatePhilox4_32_10_t* s) {
  *s = {};
  s->key = {static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32)};
  skipahead_sequence(sequence, s);
  skipahead(offset, s);
}
inline unsigned curand(curandStatePhilox4_32_10_t* s) {
  const unsigned numbers[] = {s->output.x, s->output.y, s->output.z, s->output.w};
  const unsigned result = numbers[s->STATE & 3];
  if (++s->STATE == 4) {
    s->STATE = 0;
    const unsigned low = s->ctr.x, high = s->ctr.y;
    rung::cuda::add_to_counter(&s->ctr.x, &s->ctr.y, 1);
    if (s->ctr.x < low && s->ctr.y < high) rung::cuda::add_to_counter(&s->ctr.z, &s->ctr.w, 1);
    s->output = rung::cuda::philox(s->ctr, s->key);
  }
  return result;
}

inline unsigned curand(curandStateXORWOW_t* s) {
  const unsigned t = s->v[0] ^ (s->v[0] >> 2);
  for (int i = 0; i < 4; ++i) s->v[i] = s->v[i + 1];
  s->v[4] = (s->v[4] ^ (s->v[4] << 4)) ^ (t ^ (t << 1));
  s->d += 362437;
  return s->v[4] + s->d;
}
inline void skipahead(unsigned long long n, curandStateXORWOW_t* s) {
  rung::cuda::skip_xorwow(s->v, n, 0);
  s->d += static_cast<unsigned>(n) * 362437;
}
inline void skipahead_sequence(unsigned long long n, curandStateXORWOW_t* s) {
  rung::cuda::skip_xorwow(s->v, n, 67);
}
inline void curand_init(unsigned long long seed, unsigned long long sequence,
                        unsigned long long offset, curandStateXORWOW_t* s) {
  *s = {};
  // Mixes the seed into Marsaglia's initial values.
  const unsigned low = (static_cast<unsigned>(seed) ^ 0xaad26b49u) * 1099087573u;
  const unsigned high = (static_cast<unsigned>(seed >> 32) ^ 0xf7dcefddu) * 2591861531u;
  s->d = 6615241u + high + low;
  s->v[0] = 123456789u + low;
  s->v[1] = 362436069u ^ low;
  s->v[2] = 521288629u + high;
  s->v[3] = 88675123u ^ high;
  s->v[4] = 5783321u + low;
  skipahead_sequence(sequence, s);
  skipahead(offset, s);
}
