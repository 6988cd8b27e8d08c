// SPDX-License-Identifier: Apache-2.0
// Estimates of work (docs/choice.md) for kernels whose threads loop over their part of the data.
// The library chooses among kernels by these estimates.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "rung/core/bounds.hpp"
#include "rung/core/context.hpp"
#include "rung/core/integer.hpp"
#include "rung/core/type_path.hpp"
#include "rung/core/work.hpp"
#include "rung/device/resident.hpp"

namespace rung::inline RUNG_TARGET {

/// Returns the rates key (Work::path) of rows that are read more than once: "strided" if they are
/// not contiguous, "long" if they have more than `cached` elements, so that later reads miss the
/// caches, else "".
inline std::string_view row_path(bool contiguous, std::int64_t length, std::int64_t cached) {
  return !contiguous ? "strided" : length > cached ? "long" : "";
}

/// Returns the work of `blocks` blocks. Each thread has `registers` registers and runs `trips` loop
/// iterations, each of which waits for its loads: `trips` rounds per block, and one step per thread
/// and iteration.
inline Work block_work(Amount blocks, int threads, Amount trips, std::string_view path = "",
                       int registers = 32) {
  return {.blocks = blocks,
          .resident = blocks_per_sm(threads, registers),
          .rounds = trips,
          .steps = threads * trips,
          .path = path};
}

/// Returns the number of 128-byte lines that a warp loads from if its lanes' elements are `apart`
/// bytes apart.
inline std::int64_t lines_of_load(std::int64_t apart) {
  constexpr std::int64_t lanes = 32, line = 128;
  return clamped<std::int64_t>((apart < 0 ? -apart : apart) * lanes / line, 1, lanes);
}

/// Returns `work` with the resident blocks per SM limited to `fitting`, the number of blocks that
/// fit in shared memory, but at least 1.
inline Work in_shared(double fitting, Work work) {
  work.resident = clamped(fitting, 1.0, double{work.resident});
  return work;
}

/// Returns the work of a grid of at most `most` blocks, each of which processes several blocks of
/// `work` in a loop.
inline Work in_turns(Amount most, Work work) {
  const double turns = std::ceil(work.blocks / larger(double{most}, 1.0));
  work.blocks = smaller(double{work.blocks}, double{most});
  work.rounds = work.rounds * turns;
  work.steps = work.steps * turns;
  return work;
}
/// Returns the work of a grid of at most as many blocks as the device holds at once, each of which
/// processes several blocks of `work` in a loop.
inline Work in_turns(const Context& context, Work work) {
  return in_turns(work.resident * context.info().sms, work);
}

/// Returns the work of `launches` launches, each with the blocks of `work`.
inline Work in_launches(Amount launches, Work work) {
  work.launches = launches;
  return work;
}

}  // namespace rung::inline RUNG_TARGET
