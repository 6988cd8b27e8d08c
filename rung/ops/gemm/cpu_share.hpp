// SPDX-License-Identifier: Apache-2.0
//
// One thread's share of a packed multiplication by a team: packing its part of B, and its rows and
// columns of C.
#pragma once

#include <algorithm>
#include <optional>

#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu_ahead.hpp"

namespace rung::gemm_cpu {

/// What one thread does of a part of C as wide as packed B: its rows and strips, over all of k.
template <class T>
struct Share {
  const Call& call;
  const Kernels<T>& ks;
  std::int64_t batch;
  const Sums<T>& sums;
  const cpu::Team& team;
  std::int64_t begin, end, mc;  // rows, and how many at a time
  std::int64_t j, columns;      // of the part
  cpu::Range strips, packing;   // to multiply by, to pack
  T* a;                         // room for a block of A

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

  /// The strips of `range`, one after the other. With `pack`, each is packed by the one before it.
  void multiply(const Block& block, const PackedA<T>& panels, T* b, cpu::Range range,
                std::int64_t p, bool pack) const {
    if (pack) pack_strips(b, {range.begin, std::min(range.begin + 1, range.end)}, p, block.k);
    for (std::int64_t s = range.begin; s < range.end; ++s) {
      std::optional<NextStrip<T>> next;
      if (pack && s + 1 < range.end) {
        next.emplace(call, ks, batch, p, block.k, column(s + 1), width(s + 1),
                     block.rows / ks.tile_rows, packed(b, s + 1, block.k));
      }
      Errand<T> errand;
      multiply_strip(sums, block, panels, packed(b, s, block.k), column(s), width(s),
                     [&](TileArgs<T>& t, bool full) {
                       errand = next && full ? next->part() : Errand<T>{};
                       t.errand = &errand;
                     });
      if (next) next->finish();
    }
  }

  /// One block of k: rows [p, p + k) of B, which go to b.
  void multiply(std::int64_t p, std::int64_t k, T* b) const {
    const bool ahead = NextStrip<T>::worth_it(call, k) && begin < end;
    if (!ahead) {
      pack_strips(b, packing, p, k);
      team.wait();
    }
    for (std::int64_t i = begin; i < end; i += mc) {
      const Block block{i, std::min(mc, end - i), k, p == 0, p + k == call.k};
      const PackedA<T> panels = ahead ? pack_panels(call, ks, batch, i, block.rows, p, k, a)
                                      : pack_a(call, ks, batch, i, block.rows, p, k, a);
      if (!ahead || i != begin) {
        multiply(block, panels, b, strips, p, false);
        continue;
      }
      multiply(block, panels, b, packing, p, true);
      team.wait();
      multiply(block, panels, b, {packing.end, strips.end}, p, false);
      multiply(block, panels, b, {strips.begin, packing.begin}, p, false);
    }
  }
};

}  // namespace rung::gemm_cpu
