// SPDX-License-Identifier: Apache-2.0
//
// Interleaved packing: the strip of B that tiles will read next is packed by the tiles before it
// or, packed already, prefetched from L3 to L2, a part every few steps (see InterleavedPacking). A
// tile issues 28 FMAs for 16 loads and not one store: the packing hides behind them, where packing
// alone waits for memory.
#pragma once

#include "rung/ops/gemm/cpu/detail/blocked.hpp"

namespace rung::gemm_cpu {

/// A strip of B, packed while tiles read the one before it.
template <class T>
class NextStrip {
 public:
  /// Rows of B are copied: they must be contiguous, and of the type that is packed. Each is in a
  /// page of its own, and of more than 1024 pages the TLB loses some before the next strip (2-core
  /// Zen 5 vCPU, 2048 rows at 2048 and 4096 cubed: -1 %; 1024 rows: 0, at 1024 cubed +3 %, with
  /// two threads +2 % to +10 % from run to run).
  static bool worth_it(const Call& call, std::int64_t k) {
    return k <= 1024 && call.b.column == 1 && call.in == dtype_of<T>;
  }

  /// Columns [j, j + columns) of rows [p, p + k), by `tiles` tiles of that k.
  NextStrip(const Call& call, const Kernels<T>& ks, std::int64_t batch, std::int64_t p,
            std::int64_t k, std::int64_t j, std::int64_t columns, std::int64_t tiles, T* to)
      : call_(call),
        ks_(ks),
        batch_(batch),
        p_(p),
        k_(k),
        j_(j),
        columns_(columns),
        to_(to),
        at_once_(tiles < 4   ? 4
                 : tiles < 8 ? 2
                             : 1) {}

  /// What the next tile is to pack of it.
  InterleavedPacking<T> part() {
    const std::int64_t rows = k_ / packing_steps * at_once_;
    if (columns_ != ks_.tile_columns() || done_ + rows > k_) return {};
    const auto* from = static_cast<const T*>(at(call_.b, call_.in, batch_, p_ + done_, j_));
    T* const to = to_ + done_ * columns_;
    done_ += rows;
    return {at_once_, from, call_.b.row, to};
  }
  /// Packs what no tile has packed.
  void finish() const {
    if (done_ == k_) return;
    pack_b(call_, ks_, batch_, p_ + done_, k_ - done_, j_, columns_, to_ + done_ * columns_);
  }

 private:
  const Call& call_;
  const Kernels<T>& ks_;
  std::int64_t batch_, p_, k_, j_, columns_;
  T* to_;
  int at_once_;            // so that `tiles` tiles pack all rows
  std::int64_t done_ = 0;  // rows
};

/// A packed strip of B, prefetched while tiles read the one before it: packed long ago, it has gone
/// to L3. Measured on a 2-core Zen 4 vCPU at 1024 and 2048 cubed, alternately: f32 +1 %, with AVX2
/// and its smaller tile +1 % to +4 %.
template <class T>
class ComingStrip {
 public:
  /// `size` elements, by `tiles` tiles of k steps.
  ComingStrip(const T* strip, std::int64_t size, std::int64_t tiles, std::int64_t k)
      : at_(strip), end_(strip + size), turns_(k / packing_steps) {
    if (tiles > 0 && turns_ > 0) lines_ = static_cast<int>(ceil_div(size, tiles * turns_ * line));
  }

  /// What the next tile is to ask for of it.
  InterleavedPacking<T> part() {
    if (at_ >= end_) return {};
    InterleavedPacking<T> background_packing;
    background_packing.lines = lines_;
    background_packing.soon = at_;
    at_ += lines_ * turns_ * line;
    return background_packing;
  }

 private:
  static constexpr std::int64_t line = 64 / sizeof(T);
  const T* at_;
  const T* end_;
  std::int64_t turns_;  // of a tile
  int lines_ = 0;       // in each
};

}  // namespace rung::gemm_cpu
