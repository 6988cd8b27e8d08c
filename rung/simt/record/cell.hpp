// SPDX-License-Identifier: Apache-2.0
// A shadow cell: who accessed a word of memory last, in 64 bits. Internal to simt/.
#pragma once

#include <cstdint>

namespace rung::simt::record {

struct Cell {
  enum State : std::uint32_t {
    none,
    one,         // a thread
    lanes,       // several lanes of one warp, at one clock of it
    block,       // several warps of one block, in one of its intervals (kept in `clock`)
    everywhere,  // several blocks
    // Only of writes:
    stored = everywhere,  // a thread, by a volatile or an atomic store
    atomic,               // a thread, by an atomic operation on what was there
    block_atomic,         // a thread, by either, atomically to its block
    copying,              // a copy that a thread has issued and that nobody knows to have landed
    engine = block  // not a thread, but a bulk copy that it has started, whose number is the clock
  };
  std::uint32_t state = none;
  std::uint32_t site = 0;    // 12 bits
  std::uint32_t bytes = 0;   // of the word: 4 bits
  std::uint32_t thread = 0;  // within its block: 10 bits
  std::uint32_t owner = 0;   // the block's number: 20 bits
  std::uint32_t clock = 0;   // the warp's: 15 bits

  static constexpr std::uint32_t most_clock = (1u << 15) - 1;

  Cell() = default;
  Cell(State which, std::uint32_t at, std::uint32_t mask, std::uint32_t who, std::uint32_t whose,
       std::uint32_t when)
      : state(which), site(at), bytes(mask), thread(who), owner(whose), clock(when) {}
  explicit Cell(std::uint64_t word)
      : state(static_cast<std::uint32_t>(word & 7)),
        site(static_cast<std::uint32_t>(word >> 3 & 0xfff)),
        bytes(static_cast<std::uint32_t>(word >> 15 & 0xf)),
        thread(static_cast<std::uint32_t>(word >> 19 & 0x3ff)),
        owner(static_cast<std::uint32_t>(word >> 29 & 0xfffff)),
        clock(static_cast<std::uint32_t>(word >> 49)) {}
  [[nodiscard]] std::uint64_t word() const {
    return state | std::uint64_t{site} << 3 | std::uint64_t{bytes} << 15 |
           std::uint64_t{thread} << 19 | std::uint64_t{owner} << 29 | std::uint64_t{clock} << 49;
  }
  [[nodiscard]] std::uint32_t warp() const { return thread / 32; }
};

/// Read in many blocks, and not written in this era: nothing more can come of reading it.
inline constexpr std::uint64_t only_read = ~std::uint64_t{0};

}  // namespace rung::simt::record
