// SPDX-License-Identifier: Apache-2.0
// Barriers, shuffles and votes of the simulated GPU.
//
// Every call carries its source location, so that a deadlock or a divergent barrier is reported
// with file and line, and two calls remain distinct even if the compiler merged or duplicated them.
//
// Warp operations follow the Volta rules: all lanes in the mask that have not exited must call the
// same operation with the same mask, and none proceeds before the last has arrived. A shuffle that
// reads an absent lane returns NaN or a huge number, so that its use shows in the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "rung/core/export.hpp"

namespace rung::simt {

using Place = std::source_location;

/// Callback of a warp operation. Each lane of `mask` arrives with a request (usually on its own
/// stack); when the last lane has arrived, `resolve` receives all requests, indexed by lane, and
/// writes the results into them.
using Resolve = void (*)(void* const* requests, std::uint32_t lanes);
RUNG_API void warp_collective(std::uint32_t mask, const char* name, Resolve resolve, void* request,
                              Place place);
RUNG_API void warp_barrier(std::uint32_t mask, Place place);
/// Returns the calling thread's lane, 0 .. 31.
RUNG_API int lane_index();

enum class BlockReduction : std::uint8_t { none, count, all, any };
RUNG_API int block_barrier(BlockReduction reduction, int predicate, Place place);
/// Waits at barrier `id` (0 .. 15) of the block, which completes after `threads` arrivals (a
/// multiple of 32).
RUNG_API void named_barrier_sync(int id, int threads, Place place);
RUNG_API void named_barrier_arrive(int id, int threads, Place place);
/// Synchronizes the caller's tile: a block is divided into tiles of 64, 128, 256 or 512 threads in
/// order of rank.
RUNG_API void tile_barrier(int threads, Place place);
/// Ranks of the threads of the tile whose values tile_exchange() returns: `count` ranks from
/// `first` on, `stride` apart.
struct TileRanks {
  int first, stride, count;
};
RUNG_API void tile_exchange(int threads, const void* mine, std::size_t bytes, TileRanks from,
                            void* result, Place place);
/// Sets the calling warp's registers per thread (setmaxnreg). `claim`: waits until other warps have
/// released enough registers.
RUNG_API void set_registers(int registers, bool claim, Place place);
/// Synchronizes every thread of a cooperative launch.
RUNG_API void grid_barrier(Place place);
/// Yields to other threads; spinning threads must call it.
RUNG_API void yield();
/// Records that the running kernel has read a clock, which may end a wait during which memory does
/// not change. No effect in host code.
RUNG_API void note_clock_read();
/// Returns the lanes of this warp that have arrived at `place` when no other lane can proceed.
RUNG_API std::uint32_t active_mask(Place place);
/// Fails the launch with an error that names the thread; does not return.
[[noreturn]] RUNG_API void fail(const char* what, Place place = Place::current());

enum class Shuffle : std::uint8_t { index, up, down, exclusive_or };
RUNG_API std::uint64_t shuffle(std::uint32_t mask, std::uint64_t bits, Shuffle kind, int operand,
                               int width, Place place);
RUNG_API std::uint32_t ballot(std::uint32_t mask, bool predicate, Place place);
RUNG_API std::uint32_t match_any(std::uint32_t mask, std::uint64_t bits, Place place);
enum class Reduction : std::uint8_t { add, min, max, bit_and, bit_or, bit_xor };
/// Reduces over the lanes of `mask`. Signed minimum and maximum treat the low 32 bits as int.
RUNG_API std::uint32_t reduce(std::uint32_t mask, std::uint32_t bits, Reduction kind,
                              bool is_signed, Place place);

/// Types that CUDA shuffles and matches: arithmetic types of 4 or 8 bytes.
template <class T>
concept WarpValue = std::is_arithmetic_v<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

template <class T>
std::uint64_t to_bits(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <class T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

namespace dialect {

inline void __syncthreads(Place place = Place::current()) {
  block_barrier(BlockReduction::none, 0, place);
}
inline int __syncthreads_count(int predicate, Place place = Place::current()) {
  return block_barrier(BlockReduction::count, predicate, place);
}
inline int __syncthreads_and(int predicate, Place place = Place::current()) {
  return block_barrier(BlockReduction::all, predicate, place);
}
inline int __syncthreads_or(int predicate, Place place = Place::current()) {
  return block_barrier(BlockReduction::any, predicate, place);
}

inline void __syncwarp(unsigned mask = 0xffffffffu, Place place = Place::current()) {
  warp_barrier(mask, place);
}

template <WarpValue T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, Place place = Place::current()) {
  return from_bits<T>(shuffle(mask, to_bits(value), Shuffle::index, lane, width, place));
}
template <WarpValue T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 Place place = Place::current()) {
  return from_bits<T>(
      shuffle(mask, to_bits(value), Shuffle::up, static_cast<int>(delta), width, place));
}
template <WarpValue T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   Place place = Place::current()) {
  return from_bits<T>(
      shuffle(mask, to_bits(value), Shuffle::down, static_cast<int>(delta), width, place));
}
template <WarpValue T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32,
                  Place place = Place::current()) {
  return from_bits<T>(shuffle(mask, to_bits(value), Shuffle::exclusive_or, lanes, width, place));
}

inline unsigned __ballot_sync(unsigned mask, int predicate, Place place = Place::current()) {
  return ballot(mask, predicate != 0, place);
}
inline int __any_sync(unsigned mask, int predicate, Place place = Place::current()) {
  return ballot(mask, predicate != 0, place) != 0;
}
inline int __all_sync(unsigned mask, int predicate, Place place = Place::current()) {
  return ballot(mask, predicate == 0, place) == 0;
}
inline unsigned __activemask(Place place = Place::current()) { return active_mask(place); }

template <WarpValue T>
unsigned __match_any_sync(unsigned mask, T value, Place place = Place::current()) {
  return match_any(mask, to_bits(value), place);
}
/// Returns the lanes of `mask` that have not exited if all of them hold the same value, else 0.
template <WarpValue T>
unsigned __match_all_sync(unsigned mask, T value, int* predicate, Place place = Place::current()) {
  const std::uint32_t here = ballot(mask, true, place);
  const std::uint32_t same = match_any(mask, to_bits(value), place);
  const bool all = same == here;
  *predicate = all ? 1 : 0;
  return all ? same : 0;
}

template <class T>
concept ReducedInteger = std::is_same_v<T, int> || std::is_same_v<T, unsigned>;
template <ReducedInteger T>
T __reduce_add_sync(unsigned mask, T value, Place place = Place::current()) {
  return static_cast<T>(
      reduce(mask, static_cast<unsigned>(value), Reduction::add, std::is_signed_v<T>, place));
}
template <ReducedInteger T>
T __reduce_min_sync(unsigned mask, T value, Place place = Place::current()) {
  return static_cast<T>(
      reduce(mask, static_cast<unsigned>(value), Reduction::min, std::is_signed_v<T>, place));
}
template <ReducedInteger T>
T __reduce_max_sync(unsigned mask, T value, Place place = Place::current()) {
  return static_cast<T>(
      reduce(mask, static_cast<unsigned>(value), Reduction::max, std::is_signed_v<T>, place));
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value, Place place = Place::current()) {
  return reduce(mask, value, Reduction::bit_and, false, place);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value, Place place = Place::current()) {
  return reduce(mask, value, Reduction::bit_or, false, place);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value, Place place = Place::current()) {
  return reduce(mask, value, Reduction::bit_xor, false, place);
}

inline void __nanosleep(unsigned) { yield(); }
[[noreturn]] inline void __trap(Place place = Place::current()) {
  fail("__trap() was called", place);
}

}  // namespace dialect
}  // namespace rung::simt
