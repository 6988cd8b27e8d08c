// SPDX-License-Identifier: Apache-2.0
// Checks of writes. Two that write the same value to a word do no harm, and are common: a flag that
// many threads set. So values are looked at, by lane where the code is instrumented.
#include "rung/simt/record/reach.hpp"

namespace rung::simt::record {
namespace {

/// Bits of a word, of which these are bytes.
std::uint32_t bits_of(std::uint32_t bytes) { return (bytes * 0x204081 & 0x1010101) * 0xff; }

}  // namespace

void Recorder::check_write(const Reach& reach, std::size_t word, const Cell& me,
                           std::uint32_t value) {
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
    if (!known) report_race(*this, reach.request, address, side_of(me, true), side_of(read, false));
    readers = 0;
  }
  // Workers on other threads may come between: whoever finds a cell finds its value or a later one.
  std::uint64_t& cell = reach.writes[word];
  std::uint32_t& kept = reach.values[word];
  Cell after = me;
  if (const std::uint64_t before = __atomic_load_n(&cell, __ATOMIC_ACQUIRE); before != 0) {
    const Cell write(before);
    const bool same_request = write.site == me.site && write.owner == me.owner &&
                              write.warp() == me.warp() && write.clock == me.clock;
    // Two that write the same value do no harm. What an atomic operation leaves is nobody's value,
    // and what a copy brings is not there yet when it starts.
    const std::uint32_t bytes = write.bytes & me.bytes;
    const bool differ = me.state == Cell::atomic || write.state == Cell::atomic ||
                        me.state == Cell::engine || ((kept ^ value) & bits_of(bytes)) != 0;
    const bool known = !same_request || reach.request.values != nullptr;
    if (bytes != 0 && differ && known && !reach.both_atomic(write) && !reach.own_bytes(write, me) &&
        !reach.ordered(write, me.thread)) {
      report_race(*this, reach.request, address, side_of(me, true), side_of(write, true));
    } else if (lacks_fence(reach.request, reach.block, write)) {
      report_proxy(*this, reach.request, side_of(me, true), side_of(write, true));
    }
    if (same_request && me.state == Cell::one && write.bytes != me.bytes) {
      after.bytes |= write.bytes;
      after.state = Cell::lanes;
    }
  }
  if (me.bytes == 0xf) {
    kept = value;
  } else {  // the word's other bytes may be written by others at this moment
    for (std::uint32_t left = me.bytes; left != 0; left &= left - 1) {
      const int i = __builtin_ctz(left);
      reinterpret_cast<std::uint8_t*>(&kept)[i] = static_cast<std::uint8_t>(value >> 8 * i);
    }
  }
  __atomic_store_n(&cell, after.word(), __ATOMIC_RELEASE);
}

void Recorder::check_parts(const Reach& reach, std::size_t window) {
  const Request& request = reach.request;
  const int log_size = request.step.log_size;
  if (request.values == nullptr || log_size >= 2) return;
  if (request.progression && request.stride != 0) return;
  const auto warp = static_cast<std::uint32_t>(&reach.warp - reach.block.warps.data());
  const auto cell_of = [&](std::uint32_t lane, std::uint32_t bytes) {
    return Cell(Cell::one, request.step.site_index, bytes, warp * warp_lanes + lane,
                reach.block.number, reach.clock);
  };
  // The lanes whose units end alike: mostly one, and its like.
  std::uint32_t alike[warp_lanes] = {};
  for (std::uint32_t lanes = request.lanes; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<std::uint32_t>(__builtin_ctz(lanes));
    const std::uint32_t unit = request.units[lane];
    const std::size_t offset = window + (std::size_t{unit} << log_size);
    const std::uint32_t bytes = ((1u << (1 << log_size)) - 1) << (offset % word_bytes);
    const std::size_t word = offset / word_bytes;
    const std::uint32_t value = reach.value(word, lane, 0) & bits_of(bytes);
    for (std::uint32_t before = alike[unit % warp_lanes]; before != 0; before &= before - 1) {
      const auto other = static_cast<std::uint32_t>(__builtin_ctz(before));
      if (request.units[other] != unit) continue;
      if ((reach.value(word, other, 0) & bits_of(bytes)) == value) continue;
      report_race(*this, request, reinterpret_cast<std::uintptr_t>(reach.memory + offset),
                  side_of(cell_of(lane, bytes), true), side_of(cell_of(other, bytes), true));
      return;
    }
    alike[unit % warp_lanes] |= 1u << lane;
  }
}

}  // namespace rung::simt::record
