// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same on every machine: a counter-based generator in integer
// arithmetic. (The distributions of <random> differ between standard libraries.)
#pragma once

#include <cstdint>
#include <string_view>

namespace rung {

/// Mixes 64 bits by a bijection in which every input bit flips every output bit with probability
/// 1/2: the finalizer of SplitMix64 [Steele, Lea & Flood 2014].
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
/// Returns the n-th number of a stream; the step is 2^64 over the golden ratio, made odd.
constexpr std::uint64_t random_bits(std::uint64_t stream, std::uint64_t n) {
  return mix_bits(stream + (n + 1) * 0x9e3779b97f4a7c15u);
}

/// Returns the stream of a name, distinct for each seed and name.
constexpr std::uint64_t random_stream(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = mix_bits(seed + 0x9e3779b97f4a7c15u);
  for (const char c : name) hash = mix_bits(hash ^ static_cast<unsigned char>(c)) + 1;
  return hash;
}

/// Sequential generator of a stream's numbers.
class Random {
 public:
  explicit constexpr Random(std::uint64_t stream) : stream_(stream) {}
  constexpr std::uint64_t next() { return random_bits(stream_, n_++); }
  /// Returns a number in [0, bound). Bounds are far below 2^64, so that the remainder is
  /// practically uniform.
  constexpr std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  std::uint64_t stream_;
  std::uint64_t n_ = 0;
};

}  // namespace rung
