// SPDX-License-Identifier: Apache-2.0
// Optimistic reads. A compare-and-swap loop begins with a plain read: `old = *p;`, then `do { ... }
// while (atomicCAS(p, old, ...) != old)`. The read is not a race, since the comparison validates
// its value: it is treated as a volatile read.
//
// The warp may synchronize between read and comparison: for example, all lanes read a table and
// vote, and one of them claims the entry that it found empty. The read is then checked before the
// comparison is known, so its finding is deferred to the end of the launch.
#include <algorithm>
#include <iterator>

#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt::record {
namespace {

/// Returns a key of the word and the accessing lane.
std::uint64_t key_of(const Step& step, std::uint32_t unit, std::uint32_t lane) {
  const std::uint64_t address = step.base + (std::uint64_t{unit} << step.log_size);
  return address / word_bytes * warp_lanes + lane;
}

}  // namespace

void Recorder::find_guesses(const RequestList& list) {
  std::uint32_t position = 0;
  for (std::uint32_t i = list.after(0); i != 0; i = list.after(i)) {
    ++position;
    if (!list.target(i).compares) continue;
    for (std::uint32_t lane = 0; lane < warp_lanes; ++lane) {
      const std::uint32_t unit = list.units_of(static_cast<int>(lane))[i];
      if (unit != no_unit) guesses_[key_of(list.step(i), unit, lane)] = position;
    }
  }
}

void Recorder::note_guess(const Target& target, std::uintptr_t address) {
  const bool global = target.where == Where::global;
  const Shadow& shadow = global ? target.region->shadow : target.block->shadow;
  if (!shadow) return;
  const std::byte* first = global ? target.region->begin() : target.block->block->shared;
  const std::size_t word = (address - reinterpret_cast<std::uintptr_t>(first)) / word_bytes;
  const std::uint32_t era = global ? launch_->era() : target.block->era;
  if (shadow.eras.as<std::uint32_t>()[word / chunk_words] != era) return;
  std::uint64_t bits = shadow.reads.as<std::uint64_t>()[word];
  const auto byte = static_cast<std::uint32_t>(address % word_bytes);
  if (state_of(bits) == Cell::in_bytes) bits = shadow.by_byte.as<ByteCells>()[word].reads[byte];
  if (state_of(bits) == Cell::in_lanes) bits = Cell(bits).lane_of(byte).word();
  const Cell read(bits);
  const auto warp = static_cast<std::uint32_t>(warp_ - block_->warps.data());
  if ((read.state != Cell::one && read.state != Cell::lanes) || read.owner != block_->number ||
      read.warp() != warp || read.clock <= warp_->known[warp]) {
    return;  // not read by this warp since the block's last synchronization
  }
  if (read.state == Cell::one && read.thread % warp_lanes != thread_->lane) return;
  const GuessPlace there = place_of_guess(target.region, static_cast<std::uint16_t>(read.site));
  if (guess_places_.insert(there).second) launch_->guessed(there, tracer.last->site_index);
}

void Recorder::check(BlockRecord& block, WarpRecord& warp, Request& request,
                     std::uint32_t position) {
  if (is_remote(block, request)) note_remote(block, warp, request);
  if (!block.flights.empty() && request.step.access != Access::marker) {
    check_flights(block, warp, request);
  }
  if (is_source(request.step.access)) note_sources(block, warp, request);
  if (block.has_sources()) check_sources(block, warp, request);
  std::uint32_t guessing = 0;  // mask of lanes
  if (request.step.access == Access::read && !guesses_.empty()) {
    request.spread();
    for (std::uint32_t left = request.lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
      const auto compared = guesses_.find(key_of(request.step, request.units[lane], lane));
      if (compared != guesses_.end() && position < compared->second) guessing |= 1u << lane;
    }
  }
  if (guessing == 0) {
    check_lanes(block, warp, request);
    return;
  }
  const auto check_some = [&](const Step& step, std::uint32_t lanes) {
    Request some{step, request.target};
    some.lanes = lanes;
    std::copy(std::begin(request.units), std::end(request.units), some.units);
    if (lanes != 0) check_lanes(block, warp, some);
  };
  Step guess = request.step;
  guess.access = Access::volatile_read;
  check_some(guess, guessing);
  check_some(request.step, request.lanes & ~guessing);
}

}  // namespace rung::simt::record
