// SPDX-License-Identifier: Apache-2.0
// Checks of requests against shadow memory: data races, reads of what nobody has written.
//
// Two accesses of one word race when at least one writes, not both are atomic, and neither is known
// to have happened before the other. The cell of a word holds its last write and its readers since.
#include <algorithm>
#include <bit>

#include "rung/simt/record/reach.hpp"

namespace rung::simt::record {

void Recorder::check_lanes(BlockRecord& block, WarpRecord& warp, Request& request) {
  const bool global = request.target.where == Where::global;
  if ((!global && request.target.where != Where::shared) || request.step.access == Access::marker)
    return;
  const Shadow& shadow = global ? request.target.region->shadow : request.target.block->shadow;
  if (!shadow) return;
  Initialised& initialised =
      global ? request.target.region->initialised : request.target.block->initialised;
  const auto* begin = reinterpret_cast<const std::byte*>(request.step.base);
  const std::byte* first =
      global ? request.target.region->begin() : request.target.block->block->shared;
  const Reach reach{request,
                    block,
                    warp,
                    shadow.writes.as<std::uint64_t>(),
                    shadow.reads.as<std::uint64_t>(),
                    shadow.values.as<std::uint32_t>(),
                    shadow.eras.as<std::uint32_t>(),
                    global ? launch_->era() : request.target.block->era,
                    first,
                    initialised ? &initialised : nullptr,
                    warp.clock + request.step.clock,
                    is_read(request.step.access),
                    !is_plain_read(request.step.access) && !is_plain_write(request.step.access)};
  const auto window = static_cast<std::size_t>(begin - first);
  const auto warp_index = static_cast<std::uint32_t>(&warp - block.warps.data());
  const int log_size = request.step.log_size;
  if (reach.is_read && only_reads(reach, window)) return;
  request.spread();
  check_parts(reach, window);
  std::uint32_t lanes = request.lanes;
  std::uint32_t unit_before = ~std::uint32_t{0};
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<std::uint32_t>(__builtin_ctz(lanes));
    const std::uint32_t unit = request.units[lane];
    const bool again = unit == unit_before;
    unit_before = unit;
    const std::uint32_t thread = warp_index * 32 + lane;
    const std::size_t offset = window + (std::size_t{unit} << log_size);
    if (again && reach.is_read) {
      // A broadcast: that several lanes read is all there is to remember.
      for (std::size_t i = 0; i < std::size_t{1} << std::max(log_size - 2, 0); ++i) {
        std::uint64_t& cell = reach.reads[offset / word_bytes + i];
        if ((cell & 7) == Cell::one) cell = (cell & ~std::uint64_t{7}) | Cell::lanes;
      }
      continue;
    }
    check_initialised(reach, thread, offset);
    if (log_size < 2) {
      const std::uint32_t bytes = ((1u << (1 << log_size)) - 1) << (offset % word_bytes);
      check_word(reach, offset / word_bytes, bytes, thread, 0);
      continue;
    }
    for (std::size_t i = 0; i < std::size_t{1} << (log_size - 2); ++i) {
      check_word(reach, offset / word_bytes + i, 0xf, thread, i);
    }
  }
}

/// Most requests by far: neighbouring words, or one, that all blocks read and nobody writes.
bool Recorder::only_reads(const Reach& reach, std::size_t window) {
  const Request& request = reach.request;
  if (!request.progression || request.stride < 0 || request.stride > 1) return false;
  const int log_size = request.step.log_size;
  const std::size_t first = window + (std::size_t{request.units[0]} << log_size);
  const std::size_t bytes = (std::size_t{request.units[31] - request.units[0]} + 1) << log_size;
  const std::size_t end = first + bytes;
  for (std::size_t chunk = first / chunk_bytes; chunk * chunk_bytes < end; ++chunk) {
    if (reach.eras[chunk] != reach.era) return false;
  }
  const std::uint64_t* const reads = reach.reads;
  std::uint64_t all = only_read;
  for (std::size_t word = first / word_bytes; word * word_bytes < end; ++word) all &= reads[word];
  if (all != only_read) return false;
  return reach.initialised == nullptr || reach.initialised->all(first, bytes);
}

void Recorder::check_word(const Reach& reach, std::size_t word, std::uint32_t bytes,
                          std::uint32_t thread, std::size_t part) {
  touch(reach.writes, reach.reads, reach.eras[word / chunk_words], reach.era, word / chunk_words);
  if (reach.is_read && reach.reads[word] == only_read) return;
  const Cell::State state = reach.state();
  const Cell me(state, reach.request.step.site_index, bytes, thread, reach.block.number,
                state == Cell::engine ? reach.request.copy : reach.clock);
  if (reach.is_read) {
    check_read(reach, word, me);
  } else {
    check_write(reach, word, me, reach.value(word, thread % warp_lanes, part));
  }
}

void Recorder::check_read(const Reach& reach, std::size_t word, const Cell& me) {
  const Cell write(reach.writes[word]);
  if (write.state != Cell::none && (write.bytes & me.bytes) != 0 && !reach.own_bytes(write, me) &&
      !reach.both_atomic(write) && !reach.ordered(write, me.thread)) {
    report_race(*this, reach.request,
                reinterpret_cast<std::uintptr_t>(reach.memory + word * word_bytes),
                side_of(me, false), side_of(write, true));
  } else if (lacks_fence(reach.request, reach.block, write)) {
    report_proxy(*this, reach.request, side_of(me, false), side_of(write, true));
  }
  if (reach.is_atomic) return;  // no plain write after it is judged by it: flags are reset so
  std::uint64_t& cell = reach.reads[word];
  const Cell before(cell);
  Cell after = me;
  switch (before.state) {
    case Cell::none:
      break;
    case Cell::one:
    case Cell::lanes:
      if (before.owner == me.owner && before.warp() == me.warp()) {
        const bool overlap = (before.bytes & me.bytes) != 0;
        if (before.clock == me.clock && overlap &&
            (before.thread != me.thread || before.state == Cell::lanes)) {
          after.state = Cell::lanes;
          after.bytes = before.bytes & me.bytes;
        }
      } else if ((before.bytes & me.bytes) != 0 && !reach.ordered(before, me.thread)) {
        after.state = before.owner == me.owner ? Cell::block : Cell::everywhere;
        after.bytes = before.bytes & me.bytes;
        after.clock = reach.block.interval & Cell::most_clock;
      }
      break;
    case Cell::block:
      if (before.owner != me.owner) {
        after.state = reach.ordered_block(before) ? Cell::one : Cell::everywhere;
      } else if (before.clock == (reach.block.interval & Cell::most_clock)) {
        return;
      }
      break;
    default:
      after.state = Cell::everywhere;
      break;
  }
  const bool clean =
      after.state == Cell::everywhere && write.state == Cell::none && after.bytes == 0xf;
  cell = clean ? only_read : after.word();
}

void Recorder::check_initialised(const Reach& reach, std::uint32_t thread, std::size_t offset) {
  if (reach.initialised == nullptr) return;
  const std::size_t bytes = std::size_t{1} << reach.request.step.log_size;
  if (is_plain_write(reach.request.step.access) || is_store(reach.request.step.access)) {
    reach.initialised->set(offset, bytes, true);
    return;
  }
  if (reach.initialised->all(offset, bytes)) return;
  // Where host code may write through a pointer, only poison is what nobody has written.
  const Region* region = reach.request.target.region;
  for (std::size_t i = 0; i < bytes && region != nullptr && region->memory.host_writes; ++i) {
    if (reach.memory[offset + i] != std::byte{poison}) {
      reach.initialised->set(offset, bytes, true);
      return;
    }
  }
  report_uninitialised(*this, reach.request,
                       reinterpret_cast<std::uintptr_t>(reach.memory + offset), reach.block,
                       thread);
  if (!reach.is_read) reach.initialised->set(offset, bytes, true);  // told once
}

}  // namespace rung::simt::record
