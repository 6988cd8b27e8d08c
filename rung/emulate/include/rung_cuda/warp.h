// SPDX-License-Identifier: Apache-2.0
// Block barriers; warp shuffles, votes, matches and reductions. Each function passes on its source
// location for messages.
#pragma once

#include "rung/simt/atomics.hpp"
#include "rung/simt/sync.hpp"
#include "rung_cuda/words.h"

using RungPlace = rung::simt::Place;

inline void __syncthreads(RungPlace place = RungPlace::current()) {
  rung::simt::block_barrier(rung::simt::BlockReduction::none, 0, place);
}
inline int __syncthreads_count(int predicate, RungPlace place = RungPlace::current()) {
  return rung::simt::block_barrier(rung::simt::BlockReduction::count, predicate, place);
}
inline int __syncthreads_and(int predicate, RungPlace place = RungPlace::current()) {
  return rung::simt::block_barrier(rung::simt::BlockReduction::all, predicate, place);
}
inline int __syncthreads_or(int predicate, RungPlace place = RungPlace::current()) {
  return rung::simt::block_barrier(rung::simt::BlockReduction::any, predicate, place);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, RungPlace place = RungPlace::current()) {
  rung::simt::warp_barrier(mask, place);
}
inline unsigned __activemask(RungPlace place = RungPlace::current()) {
  return rung::simt::active_mask(place);
}

namespace rung::cuda {

/// Shuffles any type of 1 to 8 bytes. Wider types have overloads where CUDA has them.
template <class T>
inline T shuffled(unsigned mask, const T& value, simt::Shuffle kind, int operand, int width,
                  const Place& place) {
  static_assert(sizeof(T) <= 8, "shuffles move up to 8 bytes");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = simt::shuffle(mask, bits, kind, operand, width, place);
  T result;
  __builtin_memcpy(static_cast<void*>(&result), &bits, sizeof(T));
  return result;
}

}  // namespace rung::cuda

template <class T>
inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
                     RungPlace place = RungPlace::current()) {
  return rung::cuda::shuffled(mask, value, rung::simt::Shuffle::index, lane, width, place);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                        RungPlace place = RungPlace::current()) {
  return rung::cuda::shuffled(mask, value, rung::simt::Shuffle::up, static_cast<int>(delta), width,
                              place);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                          RungPlace place = RungPlace::current()) {
  return rung::cuda::shuffled(mask, value, rung::simt::Shuffle::down, static_cast<int>(delta),
                              width, place);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32,
                         RungPlace place = RungPlace::current()) {
  return rung::cuda::shuffled(mask, value, rung::simt::Shuffle::exclusive_or, lanes, width, place);
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              RungPlace place = RungPlace::current()) {
  return rung::simt::ballot(mask, predicate != 0, place);
}
inline int __any_sync(unsigned mask, int predicate, RungPlace place = RungPlace::current()) {
  return rung::simt::ballot(mask, predicate != 0, place) != 0;
}
inline int __all_sync(unsigned mask, int predicate, RungPlace place = RungPlace::current()) {
  return rung::simt::ballot(mask, predicate == 0, place) == 0;
}
inline int __uni_sync(unsigned mask, int predicate, RungPlace place = RungPlace::current()) {
  const unsigned here = rung::simt::ballot(mask, true, place);
  const unsigned votes = rung::simt::ballot(mask, predicate != 0, place);
  return votes == 0 || votes == here;
}

template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, RungPlace place = RungPlace::current()) {
  return rung::simt::match_any(mask, rung::simt::to_bits(value), place);
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* predicate,
                                 RungPlace place = RungPlace::current()) {
  const unsigned here = rung::simt::ballot(mask, true, place);
  const bool all = rung::simt::match_any(mask, rung::simt::to_bits(value), place) == here;
  *predicate = all ? 1 : 0;
  return all ? here : 0;
}

// Warp reductions of int and unsigned over the lanes of the mask.
#define RUNG_REDUCE(name, kind)                                                        \
  inline unsigned __reduce_##name##_sync(unsigned mask, unsigned value,                \
                                         RungPlace place = RungPlace::current()) {     \
    return rung::simt::reduce(mask, value, rung::simt::Reduction::kind, false, place); \
  }
#define RUNG_REDUCE_SIGNED(name, kind)                                                     \
  RUNG_REDUCE(name, kind)                                                                  \
  inline int __reduce_##name##_sync(unsigned mask, int value,                              \
                                    RungPlace place = RungPlace::current()) {              \
    return static_cast<int>(rung::simt::reduce(mask, static_cast<unsigned>(value),         \
                                               rung::simt::Reduction::kind, true, place)); \
  }
RUNG_REDUCE_SIGNED(add, add)
RUNG_REDUCE_SIGNED(min, min)
RUNG_REDUCE_SIGNED(max, max)
RUNG_REDUCE(and, bit_and)
RUNG_REDUCE(or, bit_or)
RUNG_REDUCE(xor, bit_xor)
#undef RUNG_REDUCE_SIGNED
#undef RUNG_REDUCE

inline void __nanosleep(unsigned) { rung::simt::yield(); }
[[noreturn]] inline void __trap(RungPlace place = RungPlace::current()) {
  rung::simt::fail("__trap() was called", place);
}
inline void __brkpt() {}
inline void __prof_trigger(int) {}
inline void __threadfence() { rung::simt::fence(rung::simt::FenceScope::device); }
inline void __threadfence_block() { rung::simt::fence(rung::simt::FenceScope::block); }
inline void __threadfence_system() { rung::simt::fence(rung::simt::FenceScope::device); }
