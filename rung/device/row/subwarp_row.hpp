// SPDX-License-Identifier: Apache-2.0
// SubwarpRow: access to a short row of 16-bit elements that 4 to 16 adjacent lanes load once, hold
// in registers and store once: a warp processes up to eight rows, whatever their alignment.
//
//   using Row = SubwarpRow<T, lanes, packs, cut>;
//   const Row row(y, rows.length, exists);                 // places, from the row's address
//   Row::Words words;
//   row.load(x, 0U, words);                                // all loads in flight
//   for (int i = 0; i < Row::Words::count; ++i) { ... widen_pair<T>(words.at[i]) ... }
//   sum = lanes_reduce(sum, Plus{}, lanes);
//   row.store(y, [&](int i) { ... });                      // the results of word i
//
// Shapes   rows of at least 8 and at most lanes * packs * 8 elements; rows of all tensors begin at
//          the same element of 16 bytes. cut: rows begin or end between multiples of 16 bytes.
// Owners   lane l owns the whole aligned packs l, l + lanes ... of the row and, if the row is cut,
//          single elements before and after them: up to 7 each, one per lane, or two of four lanes.
//          Only the owner loads and stores them, so that a result may overwrite its operand.
// Cost     4 registers per pack, one per two single elements; a comparison per pack.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "rung/core/integer.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/rows.hpp"
#include "rung/device/block_work.hpp"
#include "rung/device/ptx/halves.hpp"
#include "rung/device/row/packed_words.hpp"
#include "rung/device/row/register_row.hpp"

namespace rung::inline RUNG_TARGET {

inline constexpr int subwarp_threads = 128;  // per block

/// Words of single elements per lane: one element before the packs, in the lower half, and one
/// after them.
template <int lanes, bool cut>
inline constexpr int subwarp_edges = !cut        ? 0
                                     : lanes < 8 ? 8 / lanes
                                                 : 1;

/// A lane's part of a row: the words of its packs, then those of its single elements.
template <int lanes, int packs, bool cut>
struct SubwarpWords {
  static constexpr int in_packs = 4 * packs;
  static constexpr int count = in_packs + subwarp_edges<lanes, cut>;
  unsigned at[count];
};
/// Indices of a lane's elements in a row.
template <class T, int lanes, int packs, bool cut>
class SubwarpRow {
 public:
  using Words = SubwarpWords<lanes, packs, cut>;
  static_assert(sizeof(T) == 2);

  /// `row` is the address of the row in the tensor that is stored, whose 32-byte sectors are then
  /// written by as few requests as possible.
  __device__ __forceinline__ SubwarpRow(const T* row, int length, bool exists)
      : lane_(static_cast<int>(threadIdx.x % lanes)) {
    const unsigned address = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(row)) / 2;
    const unsigned head = cut ? (0U - address) % width : 0;
    const unsigned rest = static_cast<unsigned>(length) - head;
    const unsigned tail = cut ? rest % width : 0;
    packs_ = exists ? rest / width : 0;
    head_ = exists ? static_cast<int>(head) : 0;
    tail_ = exists ? static_cast<int>(tail) : 0;
    tail_at_ = length - static_cast<int>(tail) + lane_;
    // If there are more slots than packs, the first slot begins at a multiple of 32 bytes.
    const int odd = static_cast<int>((address + head) / width % 2);
    pack_ = lane_ - (length / width < lanes * packs ? odd : 0);
    first_ = static_cast<int>(head) + pack_ * width;
  }
  /// Issues the loads of this lane; elements that do not exist read as the halves of `otherwise`.
  __device__ __forceinline__ void load(const T* row, unsigned otherwise, Words& words) const {
    const T* const first = row + first_;
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      PackedWords pack{otherwise, otherwise, otherwise, otherwise};
      if (has(k)) pack = load_words_streaming(first + k * lanes * width);
#pragma unroll
      for (int i = 0; i < 4; ++i) words.at[4 * k + i] = pack[i];
    }
    const T* const head = row + lane_;
    const T* const tail = row + tail_at_;
#pragma unroll
    for (int e = 0; e < subwarp_edges<lanes, cut>; ++e) {
      unsigned low = otherwise & 0xffffU;
      unsigned high = otherwise >> 16;
      if (lane_ + e * lanes < head_) low = __builtin_bit_cast(std::uint16_t, head[e * lanes]);
      if (lane_ + e * lanes < tail_) high = __builtin_bit_cast(std::uint16_t, tail[e * lanes]);
      words.at[Words::in_packs + e] = low | high << 16;
    }
  }
  /// Rounds and stores this lane's results; result(i) returns the two of word i.
  template <class F>
  __device__ __forceinline__ void store(T* row, F&& result) const {
    T* const first = row + first_;
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      if (!has(k)) continue;
      Pack<float, width> pack;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Pack<float, 2> both = result(4 * k + i);
        pack[2 * i] = both[0];
        pack[2 * i + 1] = both[1];
      }
      store_words_streaming(first + k * lanes * width, narrow<T>(pack));
    }
    T* const head = row + lane_;
    T* const tail = row + tail_at_;
#pragma unroll
    for (int e = 0; e < subwarp_edges<lanes, cut>; ++e) {
      const Pack<T, 2> both = convert<T>(result(Words::in_packs + e));
      if (lane_ + e * lanes < head_) head[e * lanes] = both[0];
      if (lane_ + e * lanes < tail_) tail[e * lanes] = both[1];
    }
  }

 private:
  static constexpr int width = vector_width<T>;
  [[nodiscard]] __device__ __forceinline__ bool has(int k) const {
    return static_cast<unsigned>(pack_ + k * lanes) < packs_;
  }
  int lane_;
  unsigned packs_;  // whole packs of the row
  int pack_;        // index of this lane's first pack; -1 if that slot is empty
  int first_;       // element at which that pack begins
  int head_;        // single elements of the row before the packs
  int tail_;        // and after them
  int tail_at_;     // this lane's first element of the tail
};

/// Rows of N tensors at constant distances.
template <int N>
struct SubwarpRows {
  int count;
  int length;
  int pitch[N];  // bytes from one row to the next

  /// Returns the address of a row of tensor I, whose first row is at `first`.
  template <int I, class T>
  __device__ __forceinline__ T* at(T* first, int row) const {
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return reinterpret_cast<T*>(reinterpret_cast<Byte*>(first) + std::int64_t{row} * pitch[I]);
  }
};

/// Returns the index of this thread's row; adjacent groups of lanes own adjacent rows.
template <int lanes>
__device__ __forceinline__ int subwarp_row_index() {
  return static_cast<int>(blockIdx.x * (subwarp_threads / lanes) + threadIdx.x / lanes);
}

// --- on the host ---------------------------------------------------------------------------------

inline constexpr std::int64_t shortest_subwarp_row = 16;
inline constexpr std::int64_t longest_subwarp_row = 512;

/// Lanes per row and packs per lane. A lane has three packs or more if the row does: that many
/// loads in flight hide the latency of memory, and fewer lanes spend fewer instructions per row.
struct SubwarpShape {
  int lanes;
  int packs;
};
inline constexpr std::array<SubwarpShape, 10> subwarp_shapes{
    {{4, 1}, {4, 2}, {4, 3}, {4, 4}, {4, 5}, {8, 3}, {8, 4}, {8, 5}, {16, 3}, {16, 4}}};

/// Returns the index of the first shape that holds the whole packs of a row; slots ascend.
inline std::size_t subwarp_shape_of(std::int64_t length) {
  constexpr std::int64_t width = 8;
  std::size_t shape = 0;
  while (subwarp_shapes[shape].lanes * subwarp_shapes[shape].packs < length / width) ++shape;
  return shape;
}

/// Calls f<lanes, packs, cut, log>() with the shape for rows of `length` elements.
template <class F>
void with_subwarp_shape(std::int64_t length, bool cut, bool log, F&& f) {
  const std::size_t shape = subwarp_shape_of(length);
  const auto with_flags = [&]<int lanes, int packs>() {
    if (cut) {
      return log ? f.template operator()<lanes, packs, true, true>()
                 : f.template operator()<lanes, packs, true, false>();
    }
    log ? f.template operator()<lanes, packs, false, true>()
        : f.template operator()<lanes, packs, false, false>();
  };
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    ((shape == i
          ? with_flags.template operator()<subwarp_shapes[i].lanes, subwarp_shapes[i].packs>()
          : void()),
     ...);
  }
  (std::make_index_sequence<subwarp_shapes.size()>{});
}

/// Returns the number of blocks of a kernel with `lanes` lanes per row.
inline std::int64_t subwarp_blocks(std::int64_t rows, int lanes) {
  return ceil_div(rows, std::int64_t{subwarp_threads / lanes});
}

/// Accepts rows of 16-bit elements that SubwarpRow supports in all N tensors.
template <int N>
Support require_subwarp_rows(const Rows<N>& rows, const std::array<const void*, N>& tensors) {
  constexpr std::int64_t most = 0x7fffffff;  // rows, and bytes from one to the next
  constexpr std::size_t element = 2;
  constexpr std::int64_t width = 8;
  if (rows.length < shortest_subwarp_row || rows.length > longest_subwarp_row) {
    return unsupported("rows of 16 to 512 elements");
  }
  if (!rows.are_contiguous() || rows.others.rank > 1 || rows.count() > most) {
    return unsupported("contiguous rows at one distance");
  }
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    const int index = static_cast<int>(tensor);
    if (!offsets_agree(rows.others, index, tensors[tensor], element, tensors[0], element, width)) {
      return unsupported("rows of all tensors must begin at the same element of 16 bytes");
    }
    const std::int64_t pitch = rows.others.rank == 0 ? 0 : rows.others.strides[index][0];
    if (larger(pitch, -pitch) > most / 2) return unsupported("contiguous rows at one distance");
  }
  return supported;
}

template <int N>
SubwarpRows<N> subwarp_rows(const Rows<N>& rows) {
  SubwarpRows<N> result{.count = static_cast<int>(rows.count()),
                        .length = static_cast<int>(rows.length),
                        .pitch = {}};
  for (int tensor = 0; tensor < N && rows.others.rank > 0; ++tensor) {
    result.pitch[tensor] = static_cast<int>(rows.others.strides[tensor][0] * 2);
  }
  return result;
}

/// Returns whether rows begin or end between multiples of 16 bytes; `first` is the first row of
/// tensor 0.
template <int N>
bool are_cut(const Rows<N>& rows, const void* first) {
  return !rows_are_regular(rows, 0, first, 8, 16);
}

/// Returns the work of a kernel of SubwarpRow: one round, in which a thread processes all its
/// packs. `first` is the first row of tensor 0; resident(packs, cut) returns the number of blocks
/// per SM.
template <int N, class F>
Work subwarp_work(const Rows<N>& rows, const void* first, F&& resident) {
  const SubwarpShape shape = subwarp_shapes[subwarp_shape_of(rows.length)];
  const bool cut = are_cut(rows, first);
  Work work =
      block_work(subwarp_blocks(rows.count(), shape.lanes), subwarp_threads, 1, cut ? "cut" : "");
  work.resident = resident(shape.packs, cut);
  work.steps = subwarp_threads * shape.packs;
  return work;
}

}  // namespace rung::inline RUNG_TARGET
