// SPDX-License-Identifier: Apache-2.0
// A shadow cell: who accessed a word of memory, or one byte of it, last, in 64 bits. Internal to
// simt/.
#pragma once

#include <cstdint>

namespace rung::simt::record {

struct Cell {
  enum State : std::uint32_t {
    none,
    one,         // a thread
    lanes,       // several lanes of one warp, at one clock of it; only of reads
    block,       // several warps of one block, in one of its intervals (kept in `clock`)
    everywhere,  // several blocks
    // Only of writes:
    stored = everywhere,  // a thread, by a volatile or an atomic store
    atomic,               // a thread, by an atomic operation on what was there
    block_atomic,         // a thread, by either, atomically to its block
    copying,              // a copy that a thread has issued and that is not known to have landed
    engine = block,  // not a thread, but a bulk copy that it has started, whose number is the clock
    // Only of reads:
    in_bytes = atomic,    // the word was accessed in part: each of its bytes has cells of its own
    only_read = copying,  // several blocks have read, none has written: more reads cannot race
    // Lanes in a row have read a part each of the word, at one clock. Of several readers likewise,
    // where the other one is so.
    in_lanes = block_atomic,
    // In place of another reader: a plain write behind which atomic operations have come.
    overwritten = everywhere
  };
  std::uint32_t state = none;
  std::uint32_t site = 0;    // 12 bits
  std::uint32_t thread = 0;  // within its block: 10 bits
  std::uint32_t owner = 0;   // the block's number: 24 bits
  std::uint32_t clock = 0;   // the warp's: 15 bits

  static constexpr std::uint32_t max_clock = (1u << 15) - 1;
  // Where they are in word().
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
  /// Of lanes that have read a part each of 2^log_size bytes, the first, whose number is a multiple
  /// of theirs: so its last bit tells bytes from halves.
  [[nodiscard]] Cell with_lanes(int log_size) const {
    Cell first = *this;
    first.state = in_lanes;
    first.thread += log_size == 0 ? 1 : 0;
    return first;
  }
  /// The one of them that has read this byte.
  [[nodiscard]] Cell lane_of(std::uint32_t byte) const {
    Cell lane = *this;
    if (state == in_lanes) lane.state = one;
    lane.thread = (thread & 1) != 0 ? thread - 1 + byte : thread + byte / 2;
    return lane;
  }
};

inline std::uint32_t state_of(std::uint64_t word) { return static_cast<std::uint32_t>(word & 7); }

/// Returns whether each byte of the word has readers of its own, in its reads and the other reader.
inline bool read_in_lanes(std::uint64_t reads, std::uint64_t other) {
  const std::uint32_t state = state_of(reads);
  if (state == Cell::in_lanes) return true;
  const bool several =
      state == Cell::block || state == Cell::everywhere || state == Cell::only_read;
  return several && state_of(other) == Cell::in_lanes;
}

/// In place of a word's reads: each of its bytes is only_read, by cells of its own.
inline constexpr std::uint64_t bytes_only_read = ~std::uint64_t{0};

}  // namespace rung::simt::record
