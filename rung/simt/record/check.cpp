// SPDX-License-Identifier: Apache-2.0
// Checks of requests against shadow memory: data races and reads of uninitialized memory.
//
// Two accesses to a word race if at least one of them writes, they are not both atomic, and neither
// happens before the other. A word's cells hold its last write and the reads since then.
#include <algorithm>
#include <bit>

#include "rung/simt/record/request_view.hpp"

namespace rung::simt::record {
namespace {

constexpr std::uint32_t whole_word = 0xf;  // mask of a word's bytes

}  // namespace

void Recorder::check_lanes(BlockRecord& block, WarpRecord& warp, Request& request) {
  const bool global = request.target.where == Where::global;
  if ((!global && request.target.where != Where::shared) || request.step.access == Access::marker)
    return;
  const Shadow& shadow = global ? request.target.region->shadow : request.target.block->shadow;
  if (!shadow) return;
  Initialized& initialized =
      global ? request.target.region->initialized : request.target.block->initialized;
  const auto* begin = reinterpret_cast<const std::byte*>(request.step.base);
  const std::byte* first =
      global ? request.target.region->begin() : request.target.block->block->shared;
  if (!known_) known_ = known_to_all(block, warp);
  checked_ = &warp;
  const std::uint32_t clock = warp.clock + request.step.clock;
  const Reach reach{request,
                    block,
                    warp,
                    shadow.writes.as<std::uint64_t>(),
                    shadow.reads.as<std::uint64_t>(),
                    shadow.others.as<std::uint64_t>(),
                    shadow.by_byte.as<ByteCells>(),
                    shadow.values.as<std::uint32_t>(),
                    shadow.eras.as<std::uint32_t>(),
                    global ? launch_->era() : request.target.block->era,
                    first,
                    initialized ? &initialized : nullptr,
                    clock,
                    std::min(*known_, clock - 1),
                    is_read(request.step.access),
                    !is_plain_read(request.step.access) && !is_plain_write(request.step.access)};
  const auto window = static_cast<std::size_t>(begin - first);
  if (reach.is_read && request.stride >= 0 && request.stride <= 1) {
    constexpr std::uint32_t half = warp_lanes / 2;
    const std::uint32_t* const units = request.units;
    if (request.progression && only_reads(reach, window, units[0], units[warp_lanes - 1])) return;
    if (request.halves && only_reads(reach, window, units[0], units[half - 1]) &&
        only_reads(reach, window, units[half], units[warp_lanes - 1])) {
      return;
    }
  }
  if (request.progression && request.stride == 1) {
    const std::size_t offset = window + (std::size_t{request.units[0]} << request.step.log_size);
    check_row(reach, offset, 0, warp_lanes);
    return;
  }
  request.spread();
  const std::uint32_t* const units = request.units;
  for (std::uint32_t left = request.lanes; left != 0;) {
    const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
    const std::size_t offset = window + (std::size_t{units[lane]} << request.step.log_size);
    left &= left - 1;
    const auto next = [&] { return static_cast<std::uint32_t>(__builtin_ctz(left)); };
    if (reach.is_read && left != 0 && units[next()] == units[lane]) {
      check_lane(reach, offset, lane);
      if (reach.wrote(offset, lane)) check_lane(reach, offset, next());
      // Readers after the second do not change the cell.
      reach.read_by_another_lane(offset, next());
      while (left != 0 && units[next()] == units[lane]) left &= left - 1;
      continue;
    }
    std::uint32_t end = lane + 1;
    for (; end < warp_lanes && (left >> end & 1) != 0; ++end) {
      if (units[end] != units[end - 1] + 1) break;
      left &= left - 1;
    }
    check_row(reach, offset, lane, end - lane);
  }
}

void Recorder::check_row(const Reach& reach, std::size_t offset, std::uint32_t lane,
                         std::uint32_t lanes) {
  if (lanes > 1 && check_at_once(reach, offset, lane, lanes)) return;
  for (std::uint32_t i = 0; i < lanes; ++i) {
    check_lane(reach, offset + (std::size_t{i} << reach.request.step.log_size), lane + i);
  }
}

void Recorder::check_lane(const Reach& reach, std::size_t offset, std::uint32_t lane) {
  if (check_at_once(reach, offset, lane, 1)) return;
  const int log_size = reach.request.step.log_size;
  const std::uint32_t thread = reach.first_thread() + lane;
  check_initialized(reach, thread, offset);
  if (log_size < 2) {
    const std::uint32_t bytes = ((1u << (1 << log_size)) - 1) << (offset % word_bytes) & whole_word;
    check_word(reach, offset / word_bytes, bytes, thread, 0);
    return;
  }
  for (std::size_t i = 0; i < std::size_t{1} << (log_size - 2); ++i) {
    check_word(reach, offset / word_bytes + i, whole_word, thread, i);
  }
}

/// Returns true if all blocks read these adjacent words and none writes them. Fast path of most
/// requests.
bool Recorder::only_reads(const Reach& reach, std::size_t window, std::uint32_t first_unit,
                          std::uint32_t last_unit) {
  const int log_size = reach.request.step.log_size;
  const std::size_t first = window + (std::size_t{first_unit} << log_size);
  const std::size_t bytes = (std::size_t{last_unit - first_unit} + 1) << log_size;
  const std::size_t end = first + bytes;
  for (std::size_t chunk = first / chunk_bytes; chunk * chunk_bytes < end; ++chunk) {
    if (reach.eras[chunk] != reach.era) return false;
  }
  const std::uint64_t* const reads = reach.reads;
  std::uint64_t all = Cell::only_read;  // a state with all bits set
  for (std::size_t word = first / word_bytes; word * word_bytes < end; ++word) all &= reads[word];
  if (all != Cell::only_read) return false;
  return reach.initialized == nullptr || reach.initialized->all(first, bytes);
}

void Recorder::check_word(const Reach& reach, std::size_t word, std::uint32_t bytes,
                          std::uint32_t thread, std::size_t part) {
  touch(reach.writes, reach.reads, reach.eras[word / chunk_words], reach.era, word / chunk_words);
  std::uint64_t& reads = reach.reads[word];
  if (reach.is_read && state_of(reads) == Cell::only_read) return;
  const Cell::State state = reach.state();
  const Cell me(state, reach.request.step.site_index, thread, reach.block.number,
                state == Cell::engine ? reach.request.copy : reach.clock);
  const bool split = state_of(reads) == Cell::in_bytes || reads == bytes_only_read ||
                     read_in_lanes(reads, reach.others[word]);
  if (split || bytes != whole_word) {
    check_bytes(reach, word, bytes, me, part);
    return;
  }
  const Cells cells{
      reach.writes[word], reads,
      reach.others[word], reach.values[word],
      ~std::uint32_t{0},  reinterpret_cast<std::uintptr_t>(reach.memory + word * word_bytes)};
  check_cells(reach, cells, me, part);
}

void Recorder::check_bytes(const Reach& reach, std::size_t word, std::uint32_t bytes,
                           const Cell& me, std::size_t part) {
  std::uint64_t& reads = reach.reads[word];
  ByteCells& by_byte = reach.by_byte[word];
  if (state_of(reads) != Cell::in_bytes) {
    if (reads != bytes_only_read) {
      const std::uint64_t other = reach.others[word];
      const bool in_lanes = read_in_lanes(reads, other);
      for (std::uint32_t i = 0; i < word_bytes; ++i) {
        by_byte.writes[i] = reach.writes[word];
        by_byte.reads[i] = in_lanes ? Cell(reads).lane_of(i).word() : reads;
        by_byte.others[i] =
            state_of(other) == Cell::in_lanes ? Cell(other).lane_of(i).word() : other;
      }
    }
    // Release order: threads that load this state also see the cells of the bytes.
    __atomic_store_n(&reads, Cell::in_bytes, __ATOMIC_RELEASE);
  }
  for (; bytes != 0; bytes &= bytes - 1) {
    const int i = __builtin_ctz(bytes);
    if (reach.is_read && state_of(by_byte.reads[i]) == Cell::only_read) continue;
    const Cells cells{
        by_byte.writes[i], by_byte.reads[i],
        by_byte.others[i], reach.values[word],
        0xffu << 8 * i,    reinterpret_cast<std::uintptr_t>(reach.memory + word * word_bytes + i)};
    check_cells(reach, cells, me, part);
  }
  if (!reach.is_read) return;
  std::uint64_t all = Cell::only_read;
  for (const std::uint64_t one : by_byte.reads) all &= one;
  if (all == Cell::only_read) reads = bytes_only_read;
}

void Recorder::check_cells(const Reach& reach, const Cells& cells, const Cell& me,
                           std::size_t part) {
  if (reach.is_read) {
    check_read(reach, cells, me);
  } else {
    const auto word = (cells.address - reinterpret_cast<std::uintptr_t>(reach.memory)) / word_bytes;
    check_write(reach, cells, me, reach.value(word, me.thread % warp_lanes, part));
  }
}

void Recorder::check_read(const Reach& reach, const Cells& cells, const Cell& me) {
  const Cell write(cells.write);
  if (write.state != Cell::none && !reach.both_atomic(write) && !reach.ordered(write, me.thread)) {
    report_race(*this, reach.request, cells.address, side_of(me, false), side_of(write, true));
  } else if (lacks_fence(reach.request, reach.block, write)) {
    report_proxy(*this, reach.request, side_of(me, false), side_of(write, true));
  }
  // Later plain writes are not checked against atomic reads, since programs reset flags without
  // synchronization.
  if (reach.is_atomic) return;
  const Cell before(cells.read);
  Cell after = me;
  // Two cells represent several readers: any writer differs from at least one of them.
  const auto add_to = [&](Cell::State several) {
    after.state = several;
    cells.other = before.word();
  };
  switch (before.state) {
    case Cell::none:
      break;
    case Cell::one:
    case Cell::lanes:
      if (before.owner == me.owner && before.warp() == me.warp()) {
        if (before.clock != me.clock) break;
        if (before.state == Cell::lanes) after.state = Cell::lanes;
        const bool known = before.state == Cell::lanes && Cell(cells.other).thread != me.thread;
        if (before.thread != me.thread && !known) add_to(Cell::lanes);
      } else if (!reach.ordered(before, me.thread)) {
        add_to(before.owner == me.owner ? Cell::block : Cell::everywhere);
        after.clock = reach.block.interval & Cell::max_clock;
      }
      break;
    case Cell::block:
      if (before.owner != me.owner) {
        if (!reach.ordered_block(before)) add_to(Cell::everywhere);
      } else if (before.clock == (reach.block.interval & Cell::max_clock)) {
        return;
      }
      break;
    default:
      return;
  }
  if (after.state == Cell::everywhere && write.state == Cell::none) after.state = Cell::only_read;
  cells.read = after.word();
}

void Recorder::check_initialized(const Reach& reach, std::uint32_t thread, std::size_t offset) {
  if (reach.initialized == nullptr) return;
  const std::size_t bytes = std::size_t{1} << reach.request.step.log_size;
  if (is_plain_write(reach.request.step.access) || is_store(reach.request.step.access)) {
    reach.initialized->set(offset, bytes, true);
    return;
  }
  if (reach.initialized->all(offset, bytes)) return;
  if (reach.request.step.access == Access::source_done) return;  // checked at the copy's issue
  // If host code may write through a pointer, only poison indicates uninitialized memory.
  const Region* region = reach.request.target.region;
  for (std::size_t i = 0; i < bytes && region != nullptr && region->memory.host_writes; ++i) {
    if (reach.memory[offset + i] != std::byte{poison}) {
      reach.initialized->set(offset, bytes, true);
      return;
    }
  }
  report_uninitialized(*this, reach.request,
                       reinterpret_cast<std::uintptr_t>(reach.memory + offset), reach.block,
                       thread);
  if (!reach.is_read) reach.initialized->set(offset, bytes, true);  // reported only once
}

}  // namespace rung::simt::record
