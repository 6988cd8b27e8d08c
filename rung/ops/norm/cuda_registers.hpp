// SPDX-License-Identifier: Apache-2.0
// norm with the row on chip: each thread keeps its packs of the row in registers from the one load
// to the store of y.
#pragma once

#include <algorithm>

#include "rung/ops/norm/cuda_packs.hpp"

namespace rung::norm_cuda::inline RUNG_TARGET {

template <class W>
struct RegisterShared {
  RowScratch<W> sums;
  RowScratch<Moments<W>> moments;
};

/// The threads of a row are some of a block's, along x: see device/rows.hpp.
template <class W>
struct OneBlock {
  RegisterShared<W>& scratch = shared<RegisterShared<W>>();

  __device__ __forceinline__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ __forceinline__ int threads() const { return static_cast<int>(blockDim.x); }
  template <class Body>
  __device__ __forceinline__ void for_each(std::int64_t rows, Body&& body) {
    for_each_row(rows, body);
  }
  __device__ __forceinline__ W total(W sum) { return row_reduce(sum, Plus{}, scratch.sums); }
  __device__ __forceinline__ Moments<W> total(Moments<W> moments) {
    return row_reduce(moments, AddMoments{}, scratch.moments);
  }
};

/// Rows of whole, aligned packs: `packs` of them a thread. gamma and beta are loaded once for all
/// rows where there is room for them.
template <class Team, int packs, class T>
__device__ __forceinline__ void normalise_rows(const Call<T>& call) {
  using W = Accumulator<T>;
  constexpr int width = pack_width<T>;
  constexpr bool keeps_weights = packs <= 4 && sizeof(T) == 4;
  Team team;
  const std::int64_t length = call.n / width;
  const int thread = team.thread();
  const int threads = team.threads();
  Pack<W, width> gamma[keeps_weights ? packs : 1];
  Pack<W, width> beta[keeps_weights ? packs : 1];
  if constexpr (keeps_weights) {
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int pack = thread + p * threads;
      const std::int64_t begin = std::int64_t{pack < length ? pack : 0} * width;
      if (length > 0) {
        gamma[p] = wide_weights(call, call.gamma, begin, W{1});
        beta[p] = wide_weights(call, call.beta, begin, W{0});
      }
    }
  }
  team.for_each(call.rows, [&](std::int64_t row, bool exists) {
    std::int64_t at[6] = {};
    if (exists) call.lines.rows.offsets(row, at);
    Pack<T, width> s[packs];
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int pack = thread + p * threads;
#pragma unroll
      for (int i = 0; i < width; ++i) s[p][i] = zero<T>();
      if (exists && pack < length) {
        s[p] = load_wide<width>(call.x + at[norm_lines::row_x] + std::int64_t{pack} * width);
      }
    }
    if (call.residual != nullptr) {
#pragma unroll
      for (int p = 0; p < packs; ++p) {
        const int pack = thread + p * threads;
        if (!exists || pack >= length) continue;
        const std::int64_t begin = std::int64_t{pack} * width;
        const auto r = load_wide<width>(call.residual + at[norm_lines::row_residual] + begin);
#pragma unroll
        for (int i = 0; i < width; ++i) s[p][i] = add(s[p][i], r[i]);
        if (call.sum != nullptr) store_wide(call.sum + at[norm_lines::row_sum] + begin, s[p]);
      }
    }
    W center = 0;
    if (call.layer) {
      W sum = 0;
#pragma unroll
      for (int p = 0; p < packs; ++p) {
#pragma unroll
        for (int i = 0; i < width; ++i) sum += convert<W>(s[p][i]);
      }
      center = team.total(sum) * call.part;
    }
    Moments<W> moments{};
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (thread + p * threads >= length) continue;
#pragma unroll
      for (int i = 0; i < width; ++i) moments.add(convert<W>(s[p][i]) - center);
    }
    moments = team.total(moments);
    const Scale<W> scale = scale_of(call, at, center, moments, exists && thread == 0);
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int pack = thread + p * threads;
      if (!exists || pack >= length) continue;
      const std::int64_t begin = std::int64_t{pack} * width;
      if constexpr (!keeps_weights) {
        gamma[0] = wide_weights(call, call.gamma, begin, W{1});
        beta[0] = wide_weights(call, call.beta, begin, W{0});
      }
      constexpr int one = keeps_weights ? 1 : 0;
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const W z = (convert<W>(s[p][i]) - scale.center) * scale.rstd + scale.shift;
        s[p][i] = convert<T>(z * gamma[p * one][i] + beta[p * one][i]);
      }
      store_wide(call.y + at[norm_lines::row_y] + begin, s[p]);
    }
  });
}

template <class T, int packs, int most_threads>
__global__ void __launch_bounds__(most_threads) norm_registers(Call<T> call) {
  normalise_rows<OneBlock<Accumulator<T>>, packs>(call);
}

/// Rows of any length at any address.
template <class T, int packs, int most_threads>
__global__ void __launch_bounds__(most_threads) norm_registers_cut(Call<T> call) {
  using W = Accumulator<T>;
  constexpr int width = pack_width<T>;
  auto& scratch = shared<RegisterShared<W>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  for_each_row(call.rows, [&](std::int64_t row, bool exists) {
    const PackedRow<T> packed(call, exists ? row : 0);
    const std::int64_t length = exists ? packed.packs() : 0;
    Pack<T, width> s[packs];
    W sum = 0;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int pack = thread + p * threads;
#pragma unroll
      for (int i = 0; i < width; ++i) s[p][i] = zero<T>();
      if (pack < length) s[p] = packed.first(pack, false);
#pragma unroll
      for (int i = 0; i < width; ++i) sum += convert<W>(s[p][i]);
    }
    const W center = call.layer ? row_reduce(sum, Plus{}, scratch.sums) * call.part : W{0};
    Moments<W> moments{};
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int pack = thread + p * threads;
#pragma unroll
      for (int i = 0; i < width; ++i) {
        if (pack < length && packed.exists(pack, i)) moments.add(convert<W>(s[p][i]) - center);
      }
    }
    moments = row_reduce(moments, AddMoments{}, scratch.moments);
    const Scale<W> scale = scale_of(call, packed.at, center, moments, exists && thread == 0);
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int pack = thread + p * threads;
      if (pack < length) packed.write(pack, s[p], scale);
    }
  });
}

}  // namespace rung::norm_cuda::inline RUNG_TARGET
