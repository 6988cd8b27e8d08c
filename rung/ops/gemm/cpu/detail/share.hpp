// SPDX-License-Identifier: Apache-2.0
//
// One thread's share of a packed multiplication by a team: packing its part of B, and its rows and
// columns of C. Rows are scheduled as threads get on with them.
#pragma once

#include <algorithm>
#include <atomic>
#include <optional>

#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu/detail/ahead.hpp"

namespace rung::gemm_cpu {

/// How many rows have been taken beyond the first blocks, in pieces of k of even and of odd number
/// (their parity). A thread that is ahead may begin with the next piece, but takes nothing of it
/// before all have met there.
struct Taken {
  alignas(64) std::atomic<std::int64_t> rows[2] = {};
};

/// Rows [begin, end), which `takers` threads share: each begins with a block of its own, the same
/// in all pieces of k, and who is done takes another. Towards the end they grow smaller, for all to
/// end together, whoever was held up meanwhile.
struct Rows {
  std::int64_t begin, end;
  std::int64_t most;  // at a time
  std::int64_t tile;  // a multiple of so many
  int takers, taker;
  Taken& taken;

  [[nodiscard]] cpu::Range first() const { return up_to(begin + taker * most, most); }
  /// To be called by one, when all have met in a piece of this parity.
  void restart(int parity) const { taken.rows[parity].store(0, std::memory_order_relaxed); }
  [[nodiscard]] cpu::Range take(int parity) const {
    const std::int64_t from = begin + takers * most;
    std::atomic<std::int64_t>& rows = taken.rows[parity];
    std::int64_t before = rows.load(std::memory_order_relaxed);
    for (;;) {
      const std::int64_t left = end - from - before;
      if (left <= 0) return {end, end};
      // A strip of B has to be worth fetching from L3 for the tiles of a block.
      const std::int64_t least = std::min(most, 3 * tile);
      const std::int64_t fair = round_up(ceil_div(left, std::int64_t{2} * takers), tile);
      const std::int64_t some = takers == 1 ? most : std::clamp(fair, least, most);
      if (rows.compare_exchange_weak(before, before + some, std::memory_order_relaxed)) {
        return up_to(from + before, some);
      }
    }
  }

 private:
  [[nodiscard]] cpu::Range up_to(std::int64_t at, std::int64_t count) const {
    return {std::min(at, end), std::min(at + count, end)};
  }
};

/// What one thread does of a part of C as wide as packed B: its rows and strips, over all of k.
template <class T>
struct Share {
  const Call& call;
  const Kernels<T>& ks;
  std::int64_t batch;
  const Sums<T>& sums;
  const cpu::Team& team;
  Rows rows;
  std::int64_t j, columns;     // of the part
  cpu::Range strips, packing;  // to multiply by, to pack
  T* a;                        // room for a block of A

  [[nodiscard]] std::int64_t width(std::int64_t strip) const {
    return std::min<std::int64_t>(ks.tile_columns(), columns - strip * ks.tile_columns());
  }
  [[nodiscard]] std::int64_t column(std::int64_t strip) const {
    return j + strip * ks.tile_columns();
  }
  [[nodiscard]] T* packed(T* b, std::int64_t strip, std::int64_t k) const {
    return b + strip * ks.tile_columns() * k;
  }

  void pack_strips(T* b, cpu::Range range, std::int64_t p, std::int64_t k) const {
    if (range.size() == 0) return;
    pack_b(call, ks, batch, p, k, column(range.begin),
           std::min(column(range.end), j + columns) - column(range.begin),
           packed(b, range.begin, k));
  }

  /// The strips of `range`, one after the other. With `pack`, each is packed by the one before it;
  /// without, it has been.
  void multiply(const Block& block, const PackedA<T>& panels, T* b, cpu::Range range,
                std::int64_t p, bool pack) const {
    if (pack) pack_strips(b, {range.begin, std::min(range.begin + 1, range.end)}, p, block.k);
    for (std::int64_t s = range.begin; s < range.end; ++s) {
      std::optional<NextStrip<T>> next;
      if (pack && s + 1 < range.end) {
        next.emplace(call, ks, batch, p, block.k, column(s + 1), width(s + 1),
                     block.rows / ks.tile_rows, packed(b, s + 1, block.k));
      }
      const std::int64_t after = s + 1 < range.end ? s + 1 : strips.begin;
      ComingStrip<T> coming(packed(b, after, block.k), pack ? 0 : width(after) * block.k,
                            block.rows / ks.tile_rows, block.k);
      InterleavedPacking<T> background_packing;
      multiply_strip(sums, block, panels, packed(b, s, block.k), column(s), width(s),
                     [&](TileArgs<T>& t, bool full) {
                       background_packing = !full  ? InterleavedPacking<T>{}
                                            : next ? next->part()
                                                   : coming.part();
                       t.background_packing = &background_packing;
                     });
      if (next) next->finish();
    }
  }

  /// One piece of k: rows [p, p + k) of B, which go to b. Parities alternate.
  void multiply(std::int64_t p, std::int64_t k, T* b, int parity) const {
    const auto meet = [&] {
      team.wait();
      if (rows.taker == 0) rows.restart(1 - parity);
    };
    const cpu::Range own = rows.first();
    const bool ahead = NextStrip<T>::worth_it(call, k) && own.size() > 0;
    if (!ahead) {
      pack_strips(b, packing, p, k);
      meet();
    }
    for (cpu::Range some = own; some.size() > 0; some = rows.take(parity)) {
      const Block block{some.begin, some.size(), k, p == 0, p + k == call.k};
      const PackedA<T> panels = ahead ? pack_panels(call, ks, batch, block.i, block.rows, p, k, a)
                                      : pack_a(call, ks, batch, block.i, block.rows, p, k, a);
      if (!ahead || some.begin != own.begin) {
        multiply(block, panels, b, strips, p, false);
        continue;
      }
      multiply(block, panels, b, packing, p, true);
      meet();
      multiply(block, panels, b, {packing.end, strips.end}, p, false);
      multiply(block, panels, b, {strips.begin, packing.begin}, p, false);
    }
  }
};

}  // namespace rung::gemm_cpu
