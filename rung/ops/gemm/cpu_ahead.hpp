// SPDX-License-Identifier: Apache-2.0
//
// Packing ahead: the strip of B that tiles will read next is packed by the tiles before it, a bit
// every few steps (see Errand). A tile starts 28 FMAs for 16 loads and not one store: the copying
// hides in their shadow, where packing alone waits for memory.
#pragma once

#include "rung/ops/gemm/cpu_blocked.hpp"

namespace rung::gemm_cpu {

/// A strip of B, packed while tiles read the one before it.
template <class T>
class NextStrip {
 public:
  /// Rows of B are copied: they must be contiguous, and of the type that is packed. Each lies in a
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
  Errand<T> part() {
    const std::int64_t rows = k_ / errand_steps * at_once_;
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

}  // namespace rung::gemm_cpu
