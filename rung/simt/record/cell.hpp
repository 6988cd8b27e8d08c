// SPDX-License-Identifier: Apache-2.0
// Shadow cell: the latest accesses of a word of memory, or of one byte of it, in 64 bits. Internal
// to simt/.
#pragma once

#include <cstdint>

namespace rung::simt::record {

struct Cell {
  enum State : std::uint32_t {
    none,
    one,         // one thread
    lanes,       // several lanes of one warp, at one clock; reads only
    block,       // several warps of one block, in one barrier interval (in `clock`)
    everywhere,  // several blocks
    // Writes only:
    stored = everywhere,  // one thread, by a volatile or atomic store
    atomic,               // one thread, by an atomic read-modify-write
    block_atomic,         // one thread, by a store or RMW atomic at block scope
    copying,              // a cp.async of the thread that may not have landed yet
    engine = block,       // a bulk copy started by the thread; `clock` is the copy's number
    // Reads only:
    in_bytes = atomic,    // the word was accessed in part: its bytes have their own cells
    only_read = copying,  // several blocks have read, none has written: further reads cannot race
    // Consecutive lanes have each read a part of the word, at one clock. If several readers share a
    // cell, this is the state of the second reader's cell.
    in_lanes = block_atomic,
    // In the second reader's slot: a plain write followed by atomic operations.
    overwritten = everywhere
  };
  std::uint32_t state = none;
  std::uint32_t site = 0;    // 12 bits
  std::uint32_t thread = 0;  // index in its block: 10 bits
  std::uint32_t owner = 0;   // block number: 24 bits
  std::uint32_t clock = 0;   // warp clock: 15 bits

  static constexpr std::uint32_t max_clock = (1u << 15) - 1;
  // Bit positions in word().
  static constexpr int thread_shift = 15;
  static constexpr std::uint64_t state_bits = 7;
  static constexpr std::uint64_t site_bits = std::uint64_t{0xfff} << 3;
  static constexpr std::uint64_t thread_bits = std::uint64_t{0x3ff} << thread_shift;
  static constexpr std::uint64_t warp_bits = std::uint64_t{0x3e0} << thread_shift;
  static constexpr std::uint64_t owner_bits = std::uint64_t{0xffffff} << 25;
  static constexpr std::uint64_t clock_bits = std::uint64_t{max_clock} << 49;

  Cell() = default;
  Cell(State which, std::uint32_t at, std::uint32_t who, std::uint32_t whose, std::uint32_t when)
      : state(which), site(at), thread(who), owner(whose), clock(when) {}
  explicit Cell(std::uint64_t word)
      : state(static_cast<std::uint32_t>(word & 7)),
        site(static_cast<std::uint32_t>(word >> 3 & 0xfff)),
        thread(static_cast<std::uint32_t>(word >> 15 & 0x3ff)),
        owner(static_cast<std::uint32_t>(word >> 25 & 0xffffff)),
        clock(static_cast<std::uint32_t>(word >> 49)) {}
  [[nodiscard]] std::uint64_t word() const {
    return state | std::uint64_t{site} << 3 | std::uint64_t{thread} << 15 |
           std::uint64_t{owner} << 25 | std::uint64_t{clock} << 49;
  }
  [[nodiscard]] std::uint32_t warp() const { return thread / 32; }
  /// Returns the cell of lanes that each have read 2^log_size bytes of the word. The first lane's
  /// number is a multiple of the number of lanes, so its low bit is free to encode the size (1 or 2
  /// bytes).
  [[nodiscard]] Cell with_lanes(int log_size) const {
    Cell first = *this;
    first.state = in_lanes;
    first.thread += log_size == 0 ? 1 : 0;
    return first;
  }
  /// Returns the cell of the lane that has read this byte.
  [[nodiscard]] Cell lane_of(std::uint32_t byte) const {
    Cell lane = *this;
    if (state == in_lanes) lane.state = one;
    lane.thread = (thread & 1) != 0 ? thread - 1 + byte : thread + byte / 2;
    return lane;
  }
};

inline std::uint32_t state_of(std::uint64_t word) { return static_cast<std::uint32_t>(word & 7); }

/// Returns true if cell `reads` or `other` represents consecutive lanes, each of which has read a
/// part of the word.
inline bool read_in_lanes(std::uint64_t reads, std::uint64_t other) {
  const std::uint32_t state = state_of(reads);
  if (state == Cell::in_lanes) return true;
  const bool several =
      state == Cell::block || state == Cell::everywhere || state == Cell::only_read;
  return several && state_of(other) == Cell::in_lanes;
}

/// Value of a word's read cell if each byte is only_read, in cells of its own.
inline constexpr std::uint64_t bytes_only_read = ~std::uint64_t{0};

}  // namespace rung::simt::record
