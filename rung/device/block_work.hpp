// SPDX-License-Identifier: Apache-2.0
// Words for the facts of kernels (docs/choice.md): blocks whose threads pass over their part of the
// data in trips.
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

/// Returns the path of rows that are read more than once: later reads hit caches up to `cached`
/// elements.
inline std::string_view row_path(bool contiguous, std::int64_t length, std::int64_t cached) {
  return !contiguous ? "strided" : length > cached ? "long" : "";
}

/// Returns the facts of blocks whose threads have so many registers and make `trips` trips each,
/// one after another: a trip waits for its loads, and takes every thread an instruction.
inline Work block_work(Amount blocks, int threads, Amount trips, std::string_view path = "",
                       int registers = 32) {
  return {.blocks = blocks,
          .resident = blocks_per_sm(threads, registers),
          .rounds = trips,
          .steps = threads * trips,
          .path = path};
}

/// Returns the facts of blocks of which shared memory holds no more than `fitting` per SM.
inline Work in_shared(double fitting, Work work) {
  work.resident = clamped(fitting, 1.0, double{work.resident});
  return work;
}

/// Returns the facts of a grid of at most `most` blocks, which loop over the blocks of `work`.
inline Work in_turns(Amount most, Work work) {
  const double turns = std::ceil(work.blocks / larger(double{most}, 1.0));
  work.blocks = smaller(double{work.blocks}, double{most});
  work.rounds = work.rounds * turns;
  work.steps = work.steps * turns;
  return work;
}
/// Returns the same of a grid that the device holds at once.
inline Work in_turns(const Context& context, Work work) {
  return in_turns(work.resident * context.info().sms, work);
}

/// Returns the facts of kernels of which one has those of `work`.
inline Work in_launches(Amount launches, Work work) {
  work.launches = launches;
  return work;
}

}  // namespace rung::inline RUNG_TARGET
