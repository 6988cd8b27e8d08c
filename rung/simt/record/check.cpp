// SPDX-License-Identifier: Apache-2.0
// Checks of requests against shadow memory: data races, reads of what nobody has written.
//
// Two accesses of one word race when at least one writes, not both are atomic, and neither is known
// to have happened before the other. The cell of a word holds its last write and its readers since.
#include <algorithm>
#include <bit>
#include <cstring>

#include "rung/simt/record/findings.hpp"
#include "rung/simt/record/recorder.hpp"

namespace rung::simt::record {

/// A request's view of the memory that it accesses.
struct Recorder::Reach {
  const Request& request;
  const BlockRecord& block;  // of the warp
  const WarpRecord& warp;
  std::uint64_t* writes;
  std::uint64_t* reads;
  std::uint32_t* values;
  std::uint32_t* eras;
  std::uint32_t era;
  const std::byte* memory;
  Initialised* initialised;
  std::uint32_t clock;
  bool is_read;
  bool is_atomic;  // or volatile: never in a race with its like

  /// What is remembered of a write.
  [[nodiscard]] Cell::State state() const {
    switch (request.step.access) {
      case Access::block_atomic:
        return Cell::block_atomic;
      case Access::copy:
        return Cell::copying;
      case Access::engine_write:
        return Cell::engine;
      default:
        return is_atomic && !is_read ? Cell::atomic : Cell::one;
    }
  }
  /// Whether the write before and this access are atomic to each other.
  [[nodiscard]] bool both_atomic(const Cell& write) const {
    if (!is_atomic) return false;
    const bool scoped =
        write.state == Cell::block_atomic || request.step.access == Access::block_atomic;
    return (write.state == Cell::atomic || write.state == Cell::block_atomic) &&
           (!scoped || write.owner == block.number);
  }

  /// Whether what the cell tells happened before what the warp's `thread` does now.
  [[nodiscard]] bool ordered(const Cell& before, std::uint32_t thread) const {
    if (before.state == Cell::copying) {
      return request.step.access == Access::landed && before.thread == thread;
    }
    if (before.owner != block.number) {
      const Clocks* clocks = warp.remote != nullptr ? warp.remote->of(before.owner) : nullptr;
      return clocks != nullptr && (*clocks)[before.warp()] >= before.clock;
    }
    if (before.warp() != thread / 32) return warp.known[before.warp()] >= before.clock;
    if (before.thread == thread && before.state != Cell::lanes) return true;
    if (warp.told[thread % 32] >= before.clock) return true;
    if (before.clock >= clock) return before.clock > clock;
    return warp.synced[before.thread % 32] > before.clock &&
           warp.synced[thread % 32] > before.clock;
  }
  /// Several lanes of this warp have written bytes of the word; whose is whose, nobody knows.
  [[nodiscard]] static bool own_bytes(const Cell& write, const Cell& me) {
    return write.state == Cell::lanes && write.owner == me.owner && write.warp() == me.warp();
  }
  /// The same of several warps of a block.
  [[nodiscard]] bool ordered_block(const Cell& before) const {
    if (before.owner != block.number) {
      // Which of its warps is not kept: knowing any of the block is taken for knowing all.
      return warp.remote != nullptr && warp.remote->of(before.owner) != nullptr;
    }
    return before.clock != (block.interval & Cell::most_clock) || block.partial;
  }
};

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
      check_word(reach, offset / word_bytes, bytes, thread);
      continue;
    }
    for (std::size_t i = 0; i < std::size_t{1} << (log_size - 2); ++i) {
      check_word(reach, offset / word_bytes + i, 0xf, thread);
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
                          std::uint32_t thread) {
  touch(reach.writes, reach.reads, reach.eras[word / chunk_words], reach.era, word / chunk_words);
  if (reach.is_read && reach.reads[word] == only_read) return;
  const Cell me(reach.state(), reach.request.step.site_index, bytes, thread, reach.block.number,
                reach.clock);
  if (reach.is_read) {
    check_read(reach, word, me);
  } else {
    check_write(reach, word, me);
  }
}

namespace {

Side side(const Cell& cell, bool writes) {
  return {static_cast<std::uint16_t>(cell.site), cell.owner, cell.thread, writes,
          cell.state == Cell::atomic || cell.state == Cell::block_atomic};
}

}  // namespace

void Recorder::check_read(const Reach& reach, std::size_t word, const Cell& me) {
  const Cell write(reach.writes[word]);
  if (write.state != Cell::none && (write.bytes & me.bytes) != 0 && !reach.own_bytes(write, me) &&
      !reach.both_atomic(write) && !reach.ordered(write, me.thread)) {
    report_race(*this, reach.request,
                reinterpret_cast<std::uintptr_t>(reach.memory + word * word_bytes), side(me, false),
                side(write, true));
  } else if (lacks_fence(reach.request, reach.block, write)) {
    report_proxy(*this, reach.request, side(me, false), side(write, true));
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

void Recorder::check_write(const Reach& reach, std::size_t word, const Cell& me) {
  const auto address = reinterpret_cast<std::uintptr_t>(reach.memory + word * word_bytes);
  std::uint64_t& readers = reach.reads[word];
  if (readers != 0) {
    const bool many = readers == only_read;
    const Cell read = many ? Cell() : Cell(readers);
    bool known = true;
    if (many || read.state == Cell::everywhere) {
      known = reach.warp.remote != nullptr;
    } else if ((read.bytes & me.bytes) != 0) {
      known =
          read.state == Cell::block ? reach.ordered_block(read) : reach.ordered(read, me.thread);
    }
    if (!known) report_race(*this, reach.request, address, side(me, true), side(read, false));
    readers = 0;
  }
  std::uint64_t& cell = reach.writes[word];
  Cell after = me;
  std::uint32_t value = 0;
  std::memcpy(&value, reach.memory + word * word_bytes, sizeof(value));
  // Another worker may be here, too: whoever sees its cell sees its value.
  if (const std::uint64_t last = __atomic_load_n(&cell, __ATOMIC_ACQUIRE); last != 0) {
    const Cell write(last);
    const bool same_request = write.site == me.site && write.owner == me.owner &&
                              write.warp() == me.warp() && write.clock == me.clock;
    // Two that write the same value do no harm; within one request nobody knows the values.
    if ((write.bytes & me.bytes) != 0 && !reach.both_atomic(write) && !same_request &&
        reach.values[word] != value && !reach.own_bytes(write, me) &&
        !reach.ordered(write, me.thread)) {
      report_race(*this, reach.request, address, side(me, true), side(write, true));
    } else if (lacks_fence(reach.request, reach.block, write)) {
      report_proxy(*this, reach.request, side(me, true), side(write, true));
    }
    if (same_request && me.state == Cell::one && write.bytes != me.bytes) {
      after.bytes |= write.bytes;
      after.state = Cell::lanes;
    }
  }
  reach.values[word] = value;
  __atomic_store_n(&cell, after.word(), __ATOMIC_RELEASE);
}

void Recorder::check_initialised(const Reach& reach, std::uint32_t thread, std::size_t offset) {
  if (reach.initialised == nullptr) return;
  const std::size_t bytes = std::size_t{1} << reach.request.step.log_size;
  if (is_plain_write(reach.request.step.access) ||
      reach.request.step.access == Access::volatile_write) {
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
