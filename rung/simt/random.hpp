// SPDX-License-Identifier: Apache-2.0
// Random numbers for ThreadOrder::random: SplitMix64 [Steele, Lea & Flood 2014], identical on every
// machine. Each block has its own state, so that results do not depend on the OS thread that runs
// it.
#pragma once

#include <cstdint>

namespace rung::simt {

constexpr std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

constexpr std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  return mix(state);
}

}  // namespace rung::simt
