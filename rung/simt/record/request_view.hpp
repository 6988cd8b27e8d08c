// SPDX-License-Identifier: Apache-2.0
// View of a request for the checks: the accessed memory and its shadow. Internal to simt/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rung/simt/record/findings.hpp"
#include "rung/simt/record/recorder.hpp"

namespace rung::simt::record {

/// Request with the memory that it accesses and its shadow.
struct Recorder::Reach {
  const Request& request;
  const BlockRecord& block;  // block of the warp
  const WarpRecord& warp;
  std::uint64_t* writes;
  std::uint64_t* reads;
  std::uint64_t* others;
  ByteCells* by_byte;
  std::uint32_t* values;
  std::uint32_t* eras;
  std::uint32_t era;
  const std::byte* memory;
  Initialized* initialized;
  std::uint32_t clock;
  std::uint32_t known;  // clock up to which every lane has acquired its block's accesses
  bool is_read;
  bool is_atomic;  // atomic or volatile: does not race with other such accesses

  /// Returns the state of the cell that a write of this request leaves.
  [[nodiscard]] Cell::State state() const {
    switch (request.step.access) {
      case Access::block_atomic:
      case Access::block_store:
        return Cell::block_atomic;
      case Access::atomic:
        return Cell::atomic;
      case Access::volatile_write:
        return Cell::stored;
      case Access::copy:
        return Cell::copying;
      case Access::engine_write:
        return Cell::engine;
      default:
        return Cell::one;
    }
  }
  /// Returns true if the write in the cell and this access are atomic with respect to each other.
  [[nodiscard]] bool both_atomic(const Cell& write) const {
    if (!is_atomic) return false;
    const bool scoped = write.state == Cell::block_atomic || is_of_block(request.step.access);
    return (write.state == Cell::atomic || write.state == Cell::stored ||
            write.state == Cell::block_atomic) &&
           (!scoped || write.owner == block.number);
  }

  /// Returns true if the cell's access happens before the current access by the warp's `thread`.
  [[nodiscard]] bool ordered(const Cell& before, std::uint32_t thread) const {
    if (before.state == Cell::copying) {
      return request.step.access == Access::landed && before.thread == thread;
    }
    if (before.state == Cell::engine) return landed(before, thread);
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
  /// Returns true if the bulk copy that wrote the cell is known to have landed. Accesses that the
  /// copying thread made before the start of the copy may be checked after it.
  [[nodiscard]] bool landed(const Cell& copy, std::uint32_t thread) const {
    if (copy.owner != block.number) {
      const Clocks* clocks = warp.remote != nullptr ? warp.remote->of(copy.owner) : nullptr;
      return clocks != nullptr && clocks->copies.has(copy.clock);
    }
    if (warp.known.copies.has(copy.clock)) return true;
    return copy.thread == thread && clock <= block.copies[copy.clock - 1];
  }
  /// Returns the block-wide index of the warp's first thread.
  [[nodiscard]] std::uint32_t first_thread() const {
    return static_cast<std::uint32_t>(&warp - block.warps.data()) * warp_lanes;
  }
  /// Adds a second lane of the warp to the readers in a cell.
  void read_by_another_lane(std::size_t offset, std::uint32_t lane) const {
    const std::uint32_t thread = first_thread() + lane;
    const auto add = [&](std::uint64_t& read, std::uint64_t& other) {
      Cell cell(read);
      if (cell.state != Cell::one) return;
      other = Cell(Cell::one, request.step.site_index, thread, block.number, clock).word();
      cell.state = Cell::lanes;
      read = cell.word();
    };
    for (const std::size_t end = offset + (std::size_t{1} << request.step.log_size);
         offset < end;) {
      const std::size_t word = offset / word_bytes;
      if (state_of(reads[word]) == Cell::in_bytes) {
        ByteCells& cells = by_byte[word];
        add(cells.reads[offset % word_bytes], cells.others[offset % word_bytes]);
        ++offset;
      } else {
        add(reads[word], others[word]);
        offset += word_bytes;
      }
    }
  }
  /// Returns true if this lane made the last write to the word, or to its first byte.
  [[nodiscard]] bool wrote(std::size_t offset, std::uint32_t lane) const {
    const std::size_t word = offset / word_bytes;
    const bool in_bytes = state_of(reads[word]) == Cell::in_bytes;
    const Cell write(in_bytes ? by_byte[word].writes[offset % word_bytes] : writes[word]);
    return write.state != Cell::none && write.owner == block.number &&
           write.thread == first_thread() + lane;
  }
  /// Returns the lane's written value of word `part` of the access, or the current memory contents
  /// if values are not kept.
  [[nodiscard]] std::uint32_t value(std::size_t word, std::uint32_t lane, std::size_t part) const {
    if (request.values != nullptr) return request.values[lane * RequestList::value_row() + part];
    std::uint32_t now = 0;
    std::memcpy(&now, memory + word * word_bytes, sizeof(now));
    return now;
  }
  /// Returns true if the cell's reads, by several warps of a block, happen before this access.
  [[nodiscard]] bool ordered_block(const Cell& before) const {
    if (before.owner != block.number) {
      // The cell does not record which warps have read: acquiring any access of the block counts as
      // acquiring all.
      return warp.remote != nullptr && warp.remote->of(before.owner) != nullptr;
    }
    return before.clock != (block.interval & Cell::max_clock) || block.partial;
  }
  /// Returns ordered_block(before), but if only some warps have synchronized since the reads, tests
  /// the reader in `other`, whose clock the cell keeps.
  [[nodiscard]] bool ordered_block(const Cell& before, const Cell& other,
                                   std::uint32_t thread) const {
    if (!ordered_block(before)) return false;
    const bool kept = other.state == Cell::one || other.state == Cell::lanes;
    return before.owner != block.number || !is_current(before) || !kept ||
           other.owner != block.number || ordered(other, thread);
  }
  /// Returns true if the cell's reads follow the block's last barrier of all threads.
  [[nodiscard]] bool is_current(const Cell& before) const {
    return before.clock == (block.interval & Cell::max_clock);
  }
};

/// Cells of the checked word or byte.
struct Recorder::Cells {
  std::uint64_t& write;
  std::uint64_t& read;
  std::uint64_t& other;    // second reader, if `read` represents several; or Cell::overwritten
  std::uint32_t& kept;     // last written value of the word
  std::uint32_t bits;      // mask of the value's bits that these cells cover
  std::uintptr_t address;  // address of the word or byte
};

inline Side side_of(const Cell& cell, bool writes) {
  return {.site = static_cast<std::uint16_t>(cell.site),
          .block = cell.owner,
          .thread = cell.thread,
          .writes = writes,
          .atomic = writes && (cell.state == Cell::atomic || cell.state == Cell::block_atomic),
          .copies = writes && cell.state == Cell::engine,
          .pending = writes && cell.state == Cell::copying,
          .of_many = !writes && cell.state == Cell::only_read,
          .warps = !writes && cell.state == Cell::block,
          .blocks = !writes && (cell.state == Cell::everywhere || cell.state == Cell::only_read)};
}

}  // namespace rung::simt::record
