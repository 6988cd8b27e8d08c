// SPDX-License-Identifier: Apache-2.0
// RowCut: partition of contiguous elements at any address into a head, a middle of whole 16-byte
// packs and a tail, with copies between global and shared memory. The addresses in shared and
// global memory are congruent modulo 16 bytes, so that one bulk copy moves the middle. Compute
// capability 9.0.
//
//   const RowCut<T> cut(x, length);
//   if (thread == 0) cut.load_middle(stage, x, full);          // one arrival at `full`
//   if (warp == 0) {
//     const T edge = cut.load_edge(x, lane);                   // issue early, to hide its latency
//     ...
//     cut.write_edge(stage, edge, lane);
//     __syncwarp();
//     if (lane == 0) ptx::mbarrier_arrive(full);               // the second arrival
//   }
//   ptx::mbarrier_wait(full, parity);                          // element i is at cut.at(stage)[i]
//
// Shapes   any length, also below a pack. A stage has cut_row_bytes() bytes and is aligned to 16
//          bytes.
// Owners   thread 0 issues the bulk copies; the lanes of one warp own the edges, up to 2 packs, or
//          3 with spare elements.
// Cost     one load of a warp per row besides the bulk copy, for any alignment.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/device/load.hpp"
#include "rung/device/ptx/bulk_copy.hpp"
#include "rung/device/rows.hpp"

namespace rung::inline RUNG_TARGET {

template <class T>
struct RowCut {
  static constexpr int width = vector_width<T>;
  int lead;    // elements between the last aligned address and the first element
  int head;    // elements before the middle
  int middle;  // a multiple of `width`
  int tail;

  /// `spare`: elements that the tail has at least, if the row does; up to `width`.
  __device__ __forceinline__ RowCut(const T* row, int length, int spare = 0)
      : lead(lead_of<width>(row)),
        head(smaller(lead == 0 ? 0 : width - lead, length)),
        middle(larger(length - head - spare, 0) / width * width),
        tail(length - head - middle) {}

  /// Returns the address of the first element in a stage.
  [[nodiscard]] __device__ __forceinline__ T* at(T* stage) const { return stage + lead; }
  /// Returns the index of the element of head or tail that a lane owns, or -1.
  [[nodiscard]] __device__ __forceinline__ int edge(int lane) const {
    static_assert(2 * width <= warp_size);
    if (lane < head) return lane;
    return lane >= width && lane - width < tail ? head + middle + lane - width : -1;
  }
  [[nodiscard]] __device__ __forceinline__ T load_edge(const T* row, int lane) const {
    const int element = edge(lane);
    return element >= 0 ? row[element] : zero<T>();
  }
  __device__ __forceinline__ void write_edge(T* stage, T value, int lane) const {
    const int element = edge(lane);
    if (element >= 0) at(stage)[element] = value;
  }
  /// Stores the head and the tail of a stage to global memory.
  __device__ __forceinline__ void store_edge(T* row, const T* stage, int lane) const {
    const int element = edge(lane);
    if (element >= 0) row[element] = stage[lead + element];
  }
  [[nodiscard]] __device__ __forceinline__ unsigned middle_bytes() const {
    return static_cast<unsigned>(middle) * static_cast<unsigned>(sizeof(T));
  }
  /// Arrives at the barrier, expects the middle's bytes and starts their copy. One thread calls it.
  __device__ __forceinline__ void load_middle(T* stage, const T* row,
                                              ptx::MemoryBarrier& full) const {
    if (middle == 0) return ptx::mbarrier_arrive(full);
    ptx::mbarrier_arrive_expect(full, middle_bytes());
    ptx::bulk_load(at(stage) + head, row + head, middle_bytes(), full);
  }
  /// Starts the copy of the middle out of a stage, in the thread's current group.
  __device__ __forceinline__ void store_middle(T* row, T* stage) const {
    if (middle > 0) ptx::bulk_store(row + head, at(stage) + head, middle_bytes());
  }
};

/// Returns the bytes of a stage for `length` elements at any offset from a multiple of 16 bytes,
/// rounded up to a cache line.
RUNG_HD constexpr std::int64_t cut_row_bytes(std::int64_t length, std::int64_t element) {
  return round_up(length * element + 16, std::int64_t{128});
}

}  // namespace rung::inline RUNG_TARGET
