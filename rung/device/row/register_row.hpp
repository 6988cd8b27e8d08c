// SPDX-License-Identifier: Apache-2.0
// RegisterRow: access to a row, or a block's part of a row, that a kernel loads once in 16-byte
// packs, holds in registers and stores once.
//
//   const RegisterRow<const T, kind> in(x, length, lead_of_row<kind>(x));
//   PackedWords read[packs];
//   for (int k = 0; k < packs; ++k) read[k] = in.load(pack_index(k), zero<T>());   // all in flight
//   ... widen<Sum, T>(read[k]), row_all_reduce() ...
//   const RegisterRow<Y, kind, vector_width<T>> out(y, length, lead);
//   for (int k = 0; k < packs; ++k) out.store(pack_index(k), results[k]);
//
// Shapes   contiguous rows of fewer than 2^31 elements; pack k of every tensor of a kernel holds
//          the same elements of the row.
// Owners   thread t of a row owns packs t, t + threads ...; it is the only one that loads or stores
//          them, so that a result may overwrite its operand.
// Cost     4 registers per pack; a ragged row adds two comparisons per pack, a shifted row one
//          element per thread.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/core/integer.hpp"
#include "rung/core/rows.hpp"
#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/row/packed_words.hpp"
#include "rung/device/rows.hpp"

namespace rung::inline RUNG_TARGET {

/// ragged: rows of any alignment, cut into packs at the aligned addresses of the first tensor
/// (RowPacks). shifted: rows of all tensors begin at the same element of a pack; packs are the
/// whole aligned ones, and each element before and after them belongs to one of the row's first
/// threads.
/// regular: rows begin and end at multiples of a pack. whole: regular, and every thread owns
/// exactly `packs` packs; no bounds checks.
enum class RowKind { ragged, shifted, regular, whole };

/// Returns the index of this thread's k-th pack; adjacent threads own adjacent packs.
__device__ __forceinline__ int pack_index(int k) {
  return static_cast<int>(threadIdx.x) + k * static_cast<int>(blockDim.x);
}
/// Returns the index of this thread's k-th pack of `packs`. In a whole row the packs of a warp are
/// contiguous, so that every address is a constant offset from the first.
template <RowKind kind, int packs>
__device__ __forceinline__ int pack_index(int k) {
  if constexpr (kind != RowKind::whole) return pack_index(k);
  const int thread = static_cast<int>(threadIdx.x);
  return thread + thread / warp_size * (warp_size * (packs - 1)) + k * warp_size;
}

/// Returns the number of elements from the last aligned address to the row; 0 if rows are regular.
template <RowKind kind, class T>
__device__ __forceinline__ int lead_of_row(const T* row) {
  constexpr bool unaligned = kind == RowKind::ragged || kind == RowKind::shifted;
  return unaligned ? lead_of<vector_width<T>>(row) : 0;
}

/// A contiguous row of global memory in packs of `width` elements.
template <class T, RowKind kind, int width = vector_width<std::remove_const_t<T>>>
class RegisterRow {
 public:
  using Element = std::remove_const_t<T>;
  __device__ __forceinline__ RegisterRow(T* row, std::int64_t length, int = 0)
      : first_(row), packs_(static_cast<int>(length) / width) {}
  /// Loads a pack; elements that do not exist read as `otherwise`.
  [[nodiscard]] __device__ __forceinline__ PackedWords load(int pack, Element otherwise) const {
    if constexpr (kind == RowKind::whole) {
      return load_wide_streaming<4>(at(pack));
    } else {
      Pack<Element, width> nothing;
#pragma unroll
      for (int i = 0; i < width; ++i) nothing[i] = otherwise;
      PackedWords words = words_of<Element>(nothing);
      if (has(pack)) words = load_wide_streaming<4>(at(pack));
      return words;
    }
  }
  /// Returns whether the pack holds elements of the row.
  [[nodiscard]] __device__ __forceinline__ bool has(int pack) const {
    return kind == RowKind::whole || pack < packs_;
  }
  /// Issues an asynchronous copy of the pack to shared memory, if the pack exists.
  __device__ __forceinline__ void stage(int pack, PackedWords* to, Element) const {
    if (has(pack)) ptx::async_copy<16>(to, at(pack));
  }
  template <class Sum>
  __device__ __forceinline__ void store(int pack, const Pack<Sum, width>& results) const {
    if (!has(pack)) return;
    if constexpr (sizeof(Element) * width == sizeof(PackedWords)) {
      store_wide_streaming<4>(at(pack), narrow<Element>(results));
    } else {
      store_wide_streaming<width>(first_ + pack * width, convert<Element>(results));
    }
  }

 private:
  using Word = std::conditional_t<std::is_const_v<T>, const unsigned, unsigned>;
  [[nodiscard]] __device__ __forceinline__ Word* at(int pack) const {
    return reinterpret_cast<Word*>(first_ + pack * width);
  }
  T* first_;
  int packs_;
};
template <class T, int width>
class RegisterRow<T, RowKind::ragged, width> {
 public:
  using Element = std::remove_const_t<T>;
  __device__ __forceinline__ RegisterRow(T* row, std::int64_t length, int lead)
      : packs_(row, length, lead) {}
  [[nodiscard]] __device__ __forceinline__ PackedWords load(int pack, Element otherwise) const {
    return words_of<Element>(packs_.load(pack, otherwise));
  }
  [[nodiscard]] __device__ __forceinline__ bool has(int pack) const {
    return pack < packs_.packs();
  }
  __device__ __forceinline__ void stage(int pack, PackedWords* to, Element otherwise) const {
    if (packs_.aligned && packs_.whole(pack)) {
      ptx::async_copy<16>(to, packs_.first + pack * width);
    } else if (has(pack)) {
      *to = load(pack, otherwise);
    }
  }
  template <class Sum>
  __device__ __forceinline__ void store(int pack, const Pack<Sum, width>& results) const {
    packs_.store(pack, convert<Element>(results));
  }

 private:
  RowPacks<T, width, int> packs_;
};

/// The threads of a row, at least 2 `width`, own the single elements in order.
template <class T, int width>
class RegisterRow<T, RowKind::shifted, width> : public RegisterRow<T, RowKind::regular, width> {
 public:
  using Element = std::remove_const_t<T>;
  __device__ __forceinline__ RegisterRow(T* row, std::int64_t length, int lead)
      : RegisterRow(row, smaller(lead == 0 ? 0 : width - lead, static_cast<int>(length)),
                    static_cast<int>(length)) {}
  /// Loads the single element of this thread, or returns `otherwise` if it has none.
  [[nodiscard]] __device__ __forceinline__ Element load_single(Element otherwise) const {
    return has_single_ ? *single_ : otherwise;
  }
  template <class Sum>
  __device__ __forceinline__ void store_single(Sum result) const {
    if (has_single_) *single_ = convert<Element>(result);
  }

 private:
  __device__ __forceinline__ RegisterRow(T* row, int head, int length)
      : RegisterRow<T, RowKind::regular, width>(row + head, length - head) {
    const int thread = static_cast<int>(threadIdx.x);
    const int in_packs = (length - head) / width * width;
    single_ = row + (thread < head ? thread : thread + in_packs);
    has_single_ = thread < length - in_packs;
  }
  T* single_;
  bool has_single_;
};

// --- on the host ---------------------------------------------------------------------------------

/// Returns whether every row of a tensor begins and ends at a multiple of `width` elements from
/// `first`, the first row's address, which is aligned to `bytes`. A null `first` (absent tensor)
/// skips the check of strides. `rows` are the axes across rows.
template <int N>
bool rows_are_regular(const Collapsed<N>& rows, std::int64_t length, int tensor, const void* first,
                      std::int64_t width, int bytes = 16) {
  bool regular = length % width == 0 && reinterpret_cast<std::uintptr_t>(first) % bytes == 0;
  for (int axis = 0; axis < rows.rank && first != nullptr; ++axis) {
    regular = regular && rows.strides[tensor][axis] % width == 0;
  }
  return regular;
}
template <int N>
bool rows_are_regular(const Rows<N>& rows, int tensor, const void* first, int width, int bytes) {
  return rows_are_regular(rows.others, rows.length, tensor, first, width, bytes);
}

/// Returns whether every row of a tensor begins at the same element of a pack of `width` elements
/// as the row of tensor 0. `element`, `element0`: bytes per element; `first`, `first0`: the first
/// rows.
template <int N>
bool offsets_agree(const Collapsed<N>& rows, int tensor, const void* first, std::size_t element,
                   const void* first0, std::size_t element0, std::int64_t width) {
  const auto offset = [&](const void* row, std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(row) / bytes % static_cast<std::uintptr_t>(width);
  };
  bool agree = offset(first, element) == offset(first0, element0);
  for (int axis = 0; axis < rows.rank; ++axis) {
    agree = agree && (rows.strides[tensor][axis] - rows.strides[0][axis]) % width == 0;
  }
  return agree;
}

/// Returns the maximum number of packs of `width` elements that a row of tensor 0 spans: one more
/// than its length requires if rows may begin between multiples of 16 bytes.
template <int N>
std::int64_t packs_of_row(const Rows<N>& rows, const void* first, int width) {
  bool aligned = reinterpret_cast<std::uintptr_t>(first) % 16 == 0;
  for (int axis = 0; axis < rows.others.rank; ++axis) {
    aligned = aligned && rows.others.strides[0][axis] % width == 0;
  }
  return ceil_div(rows.length, std::int64_t{width}) + (aligned ? 0 : 1);
}

}  // namespace rung::inline RUNG_TARGET
