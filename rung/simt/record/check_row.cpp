// SPDX-License-Identifier: Apache-2.0
// Checks adjacent words together. Consecutive lanes mostly access consecutive words, or one word,
// and the cells of these words differ only in the thread: one check then covers all lanes, and the
// cells are loaded and stored as vectors. Otherwise nothing is changed, and each lane is checked
// separately (check.cpp).
#include <algorithm>
#include <atomic>

#include "rung/simt/record/request_view.hpp"

namespace rung::simt::record {

/// Adjacent words accessed by consecutive lanes.
struct Recorder::Together {
  std::size_t word;   // first word
  std::size_t words;  // number of words
  int log_words;      // 2^log_words words per lane, or
  int log_lanes;      // 2^log_lanes lanes per word, each reading a part of it
  std::uint64_t me;   // cell of the first lane's access

  /// Calls f(i, cell) for each word, with the cell that its lane's access leaves.
  template <class F>
  [[gnu::always_inline]] void for_each(std::uint64_t first, F f) const {
    if (words == 1) {
      f(std::size_t{0}, first);
      return;
    }
    const std::size_t count = words;
    const int right = log_words, left = log_lanes + Cell::thread_shift;
    for (std::size_t i = 0; i < count; ++i) f(i, first + (std::uint64_t{i >> right} << left));
  }
};

/// Summary of the cells of adjacent words: the first cell, the bits in which any cell differs from
/// the first (`differ`), and the bits in which any cell differs from the cell of its lane's access
/// (`own`).
struct Recorder::Common {
  std::uint64_t first, differ = 0, own = 0;
  [[nodiscard]] bool empty() const { return (first | differ) == 0; }
  [[nodiscard]] bool differ_in(std::uint64_t bits) const { return (differ & bits) != 0; }
  /// Returns true if the cells differ at most in sites and threads.
  [[nodiscard]] bool alike() const {
    return !differ_in(Cell::state_bits | Cell::owner_bits | Cell::clock_bits);
  }
  /// Returns true if each cell records an access by the thread that accesses the word now.
  [[nodiscard]] bool own_threads() const {
    return (own & (Cell::owner_bits | Cell::thread_bits)) == 0;
  }
};

/// Returns the clock up to which every lane of the warp has acquired its block's accesses.
std::uint32_t Recorder::known_to_all(const BlockRecord& block, const WarpRecord& warp) {
  std::uint32_t met = ~std::uint32_t{0};
  for (std::uint32_t lane = 0; lane < warp_lanes; ++lane) {
    const std::uint32_t absent = (warp.launched >> lane & 1) - 1;  // all bits or none
    met = std::min(met, warp.synced[lane] | absent);
  }
  std::uint32_t known = met == 0 ? 0 : met - 1;
  for (std::size_t i = 0; i < block.warps.size(); ++i) {
    if (&block.warps[i] != &warp) known = std::min(known, warp.known[i]);
  }
  return known;
}

/// Returns true if, by the summary, the last writes happen before this access.
bool Recorder::after_writes(const Reach& reach, const Together& some, const Common& writes) {
  if (writes.empty()) return true;
  if (!writes.alike()) return false;
  const Cell write(writes.first);
  if (write.state == Cell::engine) return false;
  if (write.state == Cell::copying) {
    return reach.request.step.access == Access::landed && writes.own_threads();
  }
  return (some.log_lanes == 0 && writes.own_threads()) ||
         (write.owner == reach.block.number && write.clock <= reach.known) ||
         reach.both_atomic(write);
}

/// Returns true if, by the summary, all reads happen before this access.
bool Recorder::after_reads(const Reach& reach, const Common& reads) {
  if (reads.empty()) return true;
  const Cell read(reads.first);
  if (!reads.alike() || read.owner != reach.block.number) return false;
  switch (read.state) {
    case Cell::one:
      return read.clock <= reach.known || reads.own_threads();
    case Cell::lanes:
    case Cell::in_lanes:
      return read.clock <= reach.known;
    case Cell::block:
      return !reach.is_current(read);
    default:
      return false;
  }
}

/// Adds the lanes as readers, as check_read() does. Returns false if the summary does not suffice.
bool Recorder::add_readers(const Reach& reach, const Together& some, const Common& reads,
                           bool written) {
  std::uint64_t* const cells = reach.reads + some.word;
  std::uint64_t* const others = reach.others + some.word;
  const auto become_the_only = [&](std::uint64_t first) {
    some.for_each(first, [&](std::size_t i, std::uint64_t me) { cells[i] = me; });
    return true;
  };
  // Readers of parts of words are combined only with other such readers.
  const bool in_lanes = some.log_lanes != 0;
  const auto join_others = [&](Cell::State state) {
    const bool several = state_of(reads.first) == Cell::block;
    for (std::size_t i = 0; i < some.words; ++i) {
      const std::uint64_t one = several ? others[i] : cells[i];
      if ((state_of(one) == Cell::in_lanes) != in_lanes) return false;
    }
    Cell first(some.me);
    first.state = state == Cell::everywhere && !written ? Cell::only_read : state;
    first.clock = reach.block.interval & Cell::max_clock;
    some.for_each(first.word(), [&](std::size_t i, std::uint64_t me) {
      others[i] = in_lanes ? (cells[i] & ~Cell::state_bits) | Cell::in_lanes : cells[i];
      cells[i] = me;
    });
    return true;
  };
  if (reads.empty()) return become_the_only(some.me);
  const Cell before(reads.first);
  if (before.state == Cell::everywhere) return true;
  if (!reads.alike()) return false;
  if (before.owner != reach.block.number) {
    return reach.warp.remote == nullptr && join_others(Cell::everywhere);
  }
  if (before.state == Cell::block) {
    if (before.clock == (reach.block.interval & Cell::max_clock)) return true;
    return become_the_only(some.me);
  }
  if (before.clock <= reach.known) return become_the_only(some.me);
  if (reads.differ_in(Cell::warp_bits)) return false;
  const std::uint32_t warp = Cell(some.me).warp();
  if (before.warp() != warp) {
    if (reach.warp.known[before.warp()] >= before.clock) return become_the_only(some.me);
    return join_others(Cell::block);
  }
  if (before.clock != reach.clock) return become_the_only(some.me);
  if ((reads.own & ~Cell::site_bits) == 0) return become_the_only(some.me);
  if (in_lanes || before.state == Cell::in_lanes) return false;
  const bool several = before.state == Cell::lanes;
  some.for_each(some.me, [&](std::size_t i, std::uint64_t me) {
    const auto of_another = [&](std::uint64_t cell) {
      return ((cell ^ me) & Cell::thread_bits) != 0;
    };
    const bool another = of_another(cells[i]);
    if (another && !(several && of_another(others[i]))) others[i] = cells[i];
    cells[i] = another || several ? (me & ~Cell::state_bits) | Cell::lanes : me;
  });
  return true;
}

/// Updates overwritten cells as check_overwritten() does. Returns false, without any change, if the
/// summary does not suffice.
bool Recorder::keep_overwritten(const Reach& reach, const Together& some, const Common& writes) {
  std::uint64_t* const others = reach.others + some.word;
  const std::uint32_t state = state_of(writes.first);
  if (state == Cell::one) {
    for (std::size_t i = 0; i < some.words; ++i) {
      others[i] = (reach.writes[some.word + i] & ~Cell::state_bits) | Cell::overwritten;
    }
    return true;
  }
  if (state != Cell::none) {
    for (std::size_t i = 0; i < some.words; ++i) {
      const Cell earlier(others[i]);
      if (earlier.state == Cell::overwritten &&
          (earlier.owner != reach.block.number || earlier.clock > reach.known)) {
        return false;
      }
    }
  }
  for (std::size_t i = 0; i < some.words; ++i) {
    if (state == Cell::none || state_of(others[i]) != Cell::overwritten) others[i] = 0;
  }
  return true;
}

bool Recorder::initialized_at_once(const Reach& reach, std::size_t offset, std::size_t bytes) {
  if (reach.initialized == nullptr) return true;
  const Access access = reach.request.step.access;
  if (!is_plain_write(access) && !is_store(access)) return reach.initialized->all(offset, bytes);
  reach.initialized->set(offset, bytes, true);
  return true;
}

bool Recorder::check_at_once(const Reach& reach, std::size_t offset, std::uint32_t lane,
                             std::uint32_t lanes) {
  const Step& step = reach.request.step;
  if (is_by_engine(step.access)) return false;
  const int log_words = step.log_size < 2 ? 0 : step.log_size - 2;
  const int log_lanes = step.log_size < 2 ? 2 - step.log_size : 0;
  const std::size_t bytes = std::size_t{lanes} << step.log_size;
  if (log_lanes != 0) {
    const bool aligned = (offset | bytes) % word_bytes == 0 && lane % (1u << log_lanes) == 0;
    if (step.access != Access::read || !aligned) return false;
  }
  if (!initialized_at_once(reach, offset, bytes)) return false;
  const std::size_t word = offset / word_bytes;
  const std::size_t count = bytes / word_bytes;
  for (std::size_t chunk = word / chunk_words; chunk * chunk_words < word + count; ++chunk) {
    touch(reach.writes, reach.reads, reach.eras[chunk], reach.era, chunk);
  }
  Cell me(reach.state(), step.site_index, reach.first_thread() + lane, reach.block.number,
          reach.clock);
  if (log_lanes != 0) me = me.with_lanes(step.log_size);
  const Together some{word, count, log_words, log_lanes, me.word()};
  std::uint64_t* const write_cells = reach.writes + word;
  std::uint64_t* const read_cells = reach.reads + word;
  Common writes{write_cells[0]}, reads{read_cells[0]};
  some.for_each(some.me, [&](std::size_t i, std::uint64_t mine) {
    writes.differ |= write_cells[i] ^ writes.first;
    writes.own |= write_cells[i] ^ mine;
    reads.differ |= read_cells[i] ^ reads.first;
    reads.own |= read_cells[i] ^ mine;
  });
  const std::uint32_t read_state = state_of(reads.first);
  if (reads.differ_in(Cell::state_bits) || read_state == Cell::in_bytes) return false;
  if (reach.is_read && read_state == Cell::only_read) return true;
  if (!after_writes(reach, some, writes)) return false;
  if (reach.is_read) return reach.is_atomic || add_readers(reach, some, reads, !writes.empty());
  if (!after_reads(reach, reads)) return false;
  if (is_atomic(step.access) && !keep_overwritten(reach, some, writes)) return false;
  if (!reads.empty()) std::fill_n(read_cells, count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    reach.values[word + i] =
        reach.value(word + i, lane + static_cast<std::uint32_t>(i >> log_words),
                    i & ((std::size_t{1} << log_words) - 1));
  }
  // An OS thread that loads the cell must load this value or a later one.
  std::atomic_thread_fence(std::memory_order_release);
  some.for_each(some.me, [&](std::size_t i, std::uint64_t mine) { write_cells[i] = mine; });
  return true;
}

}  // namespace rung::simt::record
