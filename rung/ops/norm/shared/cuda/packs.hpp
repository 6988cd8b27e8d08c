// SPDX-License-Identifier: Apache-2.0
// Rows of norm's tensors in 16-byte packs with the same element boundaries in all tensors, so that
// the thread that loads a pack also stores it: y and sum may alias x or residual.
#pragma once

#include "rung/device/load_anywhere.hpp"
#include "rung/device/row/register_row.hpp"
#include "rung/ops/norm/shared/cuda/norm.hpp"

namespace rung::norm_cuda::inline RUNG_TARGET {

template <int N, class W>
__device__ __forceinline__ Pack<W, N> all_equal(W value) {
  Pack<W, N> same;
#pragma unroll
  for (int i = 0; i < N; ++i) same[i] = value;
  return same;
}

/// Loads gamma or beta from element `begin` on, at any alignment; `otherwise` if there are none.
template <class T, class W = Accumulator<T>>
__device__ __forceinline__ Pack<W, vector_width<T>> weights_anywhere(const NormArguments<T>& call,
                                                                     const void* weights,
                                                                     std::int64_t begin,
                                                                     W otherwise) {
  constexpr int width = vector_width<T>;
  if (weights == nullptr) return all_equal<width>(otherwise);
  if (call.wide_weights) {
    return unpack(load_anywhere<width>(static_cast<const W*>(weights), begin, call.n));
  }
  return widen<W, T>(words_of(load_anywhere<width>(static_cast<const T*>(weights), begin, call.n)));
}

/// A row at any address: the first and last pack may be partial, see RowPacks.
template <class T>
struct PackedRow {
  using W = Accumulator<T>;
  static constexpr int width = vector_width<T>;

  const NormArguments<T>& call;
  std::int64_t at[6] = {};
  int lead = 0;

  __device__ __forceinline__ PackedRow(const NormArguments<T>& call, std::int64_t row)
      : call(call) {
    call.lines.rows.offsets(row, at);
    lead = lead_of<width>(call.x + at[norm_lines::row_x]);
  }
  template <class U>
  __device__ __forceinline__ RowPacks<U, width> of(U* tensor, int which) const {
    return {tensor + at[which], call.n, lead};
  }
  [[nodiscard]] __device__ __forceinline__ std::int64_t packs() const {
    return (call.n + lead + width - 1) / width;
  }
  [[nodiscard]] __device__ __forceinline__ bool exists(std::int64_t pack, int i) const {
    return of(call.x, norm_lines::row_x).exists(pack, i);
  }
  /// Returns whether all elements of the pack exist.
  [[nodiscard]] __device__ __forceinline__ bool whole(std::int64_t pack) const {
    return of(call.x, norm_lines::row_x).whole(pack);
  }

  /// Returns s of the pack from x and residual; stores it in sum or, if `keeps` and there is no
  /// sum, in y, to be read again.
  __device__ __forceinline__ Pack<T, width> first(std::int64_t pack, bool keeps) const {
    Pack<T, width> s = of(call.x, norm_lines::row_x).load(pack, zero<T>());
    if (call.residual == nullptr) return s;
    const auto r = of(call.residual, norm_lines::row_residual).load(pack, zero<T>());
#pragma unroll
    for (int i = 0; i < width; ++i) s[i] = add(s[i], r[i]);
    if (call.sum != nullptr) {
      of(call.sum, norm_lines::row_sum).store(pack, s);
    } else if (keeps) {
      of(call.y, norm_lines::row_y).store(pack, s);
    }
    return s;
  }
  /// Loads a pack as words, with a streaming load, because it is not read again.
  __device__ __forceinline__ PackedWords first_words(std::int64_t pack) const {
    const auto x = of(call.x, norm_lines::row_x);
    if (call.residual == nullptr && x.aligned && x.whole(pack)) {
      return load_words_streaming(x.first + pack * width);
    }
    return words_of<T>(first(pack, false));
  }
  /// Loads a pack of s a second time: from x, sum or y.
  __device__ __forceinline__ Pack<T, width> again(std::int64_t pack) const {
    if (call.residual == nullptr) return of(call.x, norm_lines::row_x).load(pack, zero<T>());
    if (call.sum != nullptr) return of(call.sum, norm_lines::row_sum).load(pack, zero<T>());
    return of(call.y, norm_lines::row_y).load(pack, zero<T>());
  }
  __device__ __forceinline__ void write(std::int64_t pack, const PackedWords& s,
                                        const Scale<W>& scale) const {
    const std::int64_t begin = pack * width - lead;
    const Pack<W, width> gamma = weights_anywhere(call, call.gamma, begin, W{1});
    const Pack<W, width> beta = weights_anywhere(call, call.beta, begin, W{0});
    Pack<W, width> z = widen<W, T>(s);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      z[i] = ((z[i] - scale.center) * scale.rstd + scale.shift) * gamma[i] + beta[i];
    }
    const auto y = of(call.y, norm_lines::row_y);
    if (y.aligned && y.whole(pack)) {
      store_words_streaming(y.first + pack * width, narrow<T>(z));
    } else {
      y.store(pack, pack_of<T>(narrow<T>(z)));
    }
  }
};

/// Loads a pack of gamma or beta from element `begin` on, at an aligned address.
template <class T, class W = Accumulator<T>>
__device__ __forceinline__ Pack<W, vector_width<T>> wide_weights(const NormArguments<T>& call,
                                                                 const void* weights,
                                                                 std::int64_t begin, W otherwise) {
  constexpr int width = vector_width<T>;
  if (weights == nullptr) return all_equal<width>(otherwise);
  if (call.wide_weights) return load_wide<width>(static_cast<const W*>(weights) + begin);
  return convert<W>(load_wide<width>(static_cast<const T*>(weights) + begin));
}

/// Returns whether every pack of every tensor, gamma and beta included, is full and aligned.
inline bool all_packs_whole(const Norm::Args& args) {
  const norm_lines::Lines lines = norm_lines::lines_of(args);
  const auto width = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  const auto regular = [&](int tensor, const ConstTensorRef& of) {
    return rows_are_regular(lines.rows, lines.columns.size(), tensor, of.data, width);
  };
  const auto aligned = [](const ConstTensorRef& weights) {
    return reinterpret_cast<std::uintptr_t>(weights.data) % 16 == 0;
  };
  return regular(norm_lines::row_x, args.x) && regular(norm_lines::row_residual, args.residual) &&
         regular(norm_lines::row_y, args.y) && regular(norm_lines::row_sum, args.sum) &&
         aligned(args.gamma) && aligned(args.beta);
}

/// Returns the rates key of rows in packs: `whole`, or the one of rows with partial packs.
inline std::string_view pack_path(const Norm::Args& args, std::string_view whole = "") {
  return all_packs_whole(args) ? whole : size_of(args.x.dtype) == 2 ? "cut 16-bit" : "cut";
}

}  // namespace rung::norm_cuda::inline RUNG_TARGET
