// SPDX-License-Identifier: Apache-2.0
// One row of softmax, or a block's part of one, from the first load to the last store, in
// registers.
#pragma once

#include "rung/device/ptx/async_copy.hpp"
#include "rung/ops/softmax/cuda/detail/registers.hpp"

namespace rung::softmax_cuda::inline RUNG_TARGET {

/// Regular rows begin and end at multiples of a pack, others are cut there, by the lead of the
/// first tensor (RowPacks). Of whole ones, moreover, every thread has all packs that it may keep:
/// nothing asks whether there is one.
enum class RowKind { ragged, regular, whole };

/// A contiguous row in packs of `width` elements.
template <class T, RowKind kind, int width = pack_width<std::remove_const_t<T>>>
class RegisterRow {
 public:
  using Element = std::remove_const_t<T>;
  __device__ __forceinline__ RegisterRow(T* row, std::int64_t length, int = 0)
      : first_(row), packs_(static_cast<int>(length) / width) {}
  [[nodiscard]] __device__ __forceinline__ Words load(int pack, Element otherwise) const {
    if constexpr (kind == RowKind::whole) {
      return load_wide_streaming<4>(at(pack));
    } else {
      Pack<Element, width> nothing;
#pragma unroll
      for (int i = 0; i < width; ++i) nothing[i] = otherwise;
      Words words = words_of<Element>(nothing);
      if (has(pack)) words = load_wide_streaming<4>(at(pack));
      return words;
    }
  }
  /// Whether there are elements of the row in the pack.
  [[nodiscard]] __device__ __forceinline__ bool has(int pack) const {
    return kind == RowKind::whole || pack < packs_;
  }
  /// Starts a copy of the pack to a place in shared memory, if there is one.
  __device__ __forceinline__ void stage(int pack, Words* to, Element) const {
    if (has(pack)) ptx::async_copy<16>(to, at(pack));
  }
  template <class Sum>
  __device__ __forceinline__ void store(int pack, const Pack<Sum, width>& results) const {
    if (!has(pack)) return;
    if constexpr (sizeof(Element) * width == sizeof(Words)) {
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
  [[nodiscard]] __device__ __forceinline__ Words load(int pack, Element otherwise) const {
    return words_of<Element>(packs_.load(pack, otherwise));
  }
  [[nodiscard]] __device__ __forceinline__ bool has(int pack) const {
    return pack < packs_.packs();
  }
  __device__ __forceinline__ void stage(int pack, Words* to, Element otherwise) const {
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
template <RowKind kind, class T>
__device__ __forceinline__ int kept_lead(const T* row) {
  return kind == RowKind::ragged ? lead_of<pack_width<T>>(row) : 0;
}

/// The k-th of this thread's packs. Of a whole row each warp has neighboring ones: every place is
/// so many bytes off the first.
template <RowKind kind, int packs>
__device__ __forceinline__ int kept_index(int k) {
  if constexpr (kind != RowKind::whole) return pack_index(k);
  const int thread = static_cast<int>(threadIdx.x);
  return thread + thread / warp_size * (warp_size * (packs - 1)) + k * warp_size;
}

struct DoNothing {
  __device__ __forceinline__ void operator()() const {}
};

/// Forward, for one row or a block's part of one; meet(total) is the row's. meanwhile() is called
/// when all loads are in flight.
template <int packs, RowKind kind, class T, class Y, class Sum, class Meet, class F = DoNothing>
__device__ __forceinline__ void forward_row(const T* x, Y* y, std::int64_t length, int lead,
                                            const Forward<T, Y>& p, const Power<Sum>& power,
                                            Meet&& meet, F&& meanwhile = {}) {
  constexpr int width = pack_width<T>;
  const RegisterRow<const T, kind> in(x, length, lead);
  // What does not exist reads as -infinity, whose exponential is 0.
  const T nothing = convert<T>(-std::numeric_limits<Sum>::infinity());
  Words read[packs];
#pragma unroll
  for (int k = 0; k < packs; ++k) read[k] = in.load(kept_index<kind, packs>(k), nothing);
  meanwhile();
  Pack<Sum, width> values[packs];
#pragma unroll
  for (int k = 0; k < packs; ++k) values[k] = widen<Sum, T>(read[k]);
  const Total<Sum> mine = take_powers(values, p.log, p.scale, power);
  const Finish<Sum> finish(mine, meet(mine), p.log, p.scale, power);
  const RegisterRow<Y, kind, width> out(y, length, lead);
#pragma unroll
  for (int k = 0; k < packs; ++k) out.store(kept_index<kind, packs>(k), finish(values[k]));
}

/// Backward likewise. y and dy stay as they are read: 16-bit types take half the registers.
template <int packs, RowKind kind, class T, class Y, class Meet, class F = DoNothing>
__device__ __forceinline__ void backward_row(const T* y, const T* dy, Y* dx, std::int64_t length,
                                             int lead, const Backward<T, Y>& p, Meet&& meet,
                                             F&& meanwhile = {}) {
  using Sum = typename Backward<T, Y>::Sum;
  constexpr int width = pack_width<T>;
  const RegisterRow<const T, kind> ys(y, length, lead);
  const RegisterRow<const T, kind> dys(dy, length, lead);
  Words values[packs];
  Words gradients[packs];
#pragma unroll
  for (int k = 0; k < packs; ++k) {
    values[k] = ys.load(pack_index(k), zero<T>());
    gradients[k] = dys.load(pack_index(k), zero<T>());
  }
  meanwhile();
  Sum sum = 0;
#pragma unroll
  for (int k = 0; k < packs; ++k) {
    const Pack<Sum, width> value = widen<Sum, T>(values[k]);
    const Pack<Sum, width> gradient = widen<Sum, T>(gradients[k]);
#pragma unroll
    for (int i = 0; i < width; ++i) sum += p.log ? gradient[i] : gradient[i] * value[i];
  }
  sum = meet(Total<Sum>{0, sum}).sum;
  const RegisterRow<Y, kind, width> out(dx, length, lead);
#pragma unroll
  for (int k = 0; k < packs; ++k) {
    const Pack<Sum, width> value = widen<Sum, T>(values[k]);
    const Pack<Sum, width> gradient = widen<Sum, T>(gradients[k]);
    Pack<Sum, width> results;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      results[i] = gradient_of(value[i], gradient[i], sum, p.scale, p.log);
    }
    out.store(pack_index(k), results);
  }
}

}  // namespace rung::softmax_cuda::inline RUNG_TARGET
