// SPDX-License-Identifier: Apache-2.0
// Checks of writes. Two writes of the same value to a word, such as a flag that many threads set,
// are benign and common; values are therefore compared, per lane in instrumented code.
#include "rung/simt/record/request_view.hpp"

namespace rung::simt::record {
namespace {

/// Returns a reader other than the writing thread, preferably of another warp or block.
Cell other_reader(const Cell& read, const Cell& other, const Cell& me) {
  const bool same_block = read.owner == me.owner;
  bool own = same_block;
  if (read.state == Cell::one || read.state == Cell::none) own = false;
  if (read.state == Cell::lanes) own = same_block && read.thread == me.thread;
  if (read.state == Cell::block) own = same_block && read.warp() == me.warp();
  return own ? other : read;
}

}  // namespace

/// Keeps a plain write beside later atomic operations on the word, since later accesses may still
/// race with it. Another plain write or a second reader replaces it.
void Recorder::check_overwritten(const Reach& reach, const Cells& cells, const Cell& me) {
  const Cell write(cells.write);
  Cell earlier = write;
  if (write.state == Cell::one) {
    earlier.state = Cell::overwritten;
    cells.other = earlier.word();
    return;
  }
  earlier = write.state == Cell::none ? Cell() : Cell(cells.other);
  if (earlier.state != Cell::overwritten) {
    cells.other = 0;
  } else if (!reach.ordered(earlier, me.thread)) {
    report_race(*this, reach.request, cells.address, side_of(me, true), side_of(earlier, true));
  }
}

void Recorder::check_write(const Reach& reach, const Cells& cells, const Cell& me,
                           std::uint32_t value) {
  if (cells.read != 0) {
    const Cell read(cells.read);
    bool known = false;
    switch (read.state) {
      case Cell::everywhere:
      case Cell::only_read:
        known = reach.warp.remote != nullptr;
        break;
      case Cell::block:
        known = reach.ordered_block(read, Cell(cells.other), me.thread);
        break;
      default:
        known = reach.ordered(read, me.thread);
        break;
    }
    if (!known) {
      // The racing reader: the one in `other` if all other warps of the block have synchronized,
      // else one that differs from the writing thread.
      const bool judged = read.state == Cell::block && reach.ordered_block(read);
      const Cell other = judged ? Cell(cells.other) : other_reader(read, Cell(cells.other), me);
      Side reader = side_of(read, false);
      reader.site = static_cast<std::uint16_t>(other.site);
      reader.block = other.owner;
      reader.thread = other.thread;
      report_race(*this, reach.request, cells.address, side_of(me, true), reader);
    }
    cells.read = 0;
  }
  // A cell is stored after its value, so the acquire also makes the value visible.
  if (const std::uint64_t before = __atomic_load_n(&cells.write, __ATOMIC_ACQUIRE); before != 0) {
    const Cell write(before);
    const bool same_request = write.site == me.site && write.owner == me.owner &&
                              write.warp() == me.warp() && write.clock == me.clock;
    // Two plain writes of the same value are benign. The result of an atomic operation is not known
    // to be equal, and at the start of a copy its data has not arrived.
    const bool copies =
        me.state == Cell::copying && (write.state != Cell::copying || write.thread == me.thread);
    const bool differ = me.state == Cell::atomic || write.state == Cell::atomic ||
                        me.state == Cell::engine || copies ||
                        ((cells.kept ^ value) & cells.bits) != 0;
    const bool known = !same_request || reach.request.values != nullptr;
    if (differ && known && !reach.both_atomic(write) && !reach.ordered(write, me.thread)) {
      report_race(*this, reach.request, cells.address, side_of(me, true), side_of(write, true));
    } else if (lacks_fence(reach.request, reach.block, write)) {
      report_proxy(*this, reach.request, side_of(me, true), side_of(write, true));
    }
  }
  if (is_atomic(reach.request.step.access)) check_overwritten(reach, cells, me);
  if (cells.bits == ~std::uint32_t{0}) {
    cells.kept = value;
  } else {  // other threads may write other bytes of the word concurrently
    const int shift = __builtin_ctz(cells.bits);
    reinterpret_cast<std::uint8_t*>(&cells.kept)[shift / 8] =
        static_cast<std::uint8_t>(value >> shift);
  }
  __atomic_store_n(&cells.write, me.word(), __ATOMIC_RELEASE);
}

}  // namespace rung::simt::record
