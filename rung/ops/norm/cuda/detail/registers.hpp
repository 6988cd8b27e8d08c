// SPDX-License-Identifier: Apache-2.0
// norm with the row on chip: each thread keeps its packs of the row in registers from the one load
// to the store of y.
#pragma once

#include "rung/device/dependent.hpp"
#include "rung/device/ptx_bulk_copy.hpp"
#include "rung/ops/norm/cuda/detail/parts.hpp"
#include "rung/ops/norm/cuda/detail/widen.hpp"

namespace rung::norm_cuda::inline RUNG_TARGET {

template <class W>
struct RegisterShared {
  WarpPart<W> parts[32];  // of the rows of a block
  RowScratch<W> sums;     // of rows that cut packs
  RowScratch<Moments<W>> moments;
};

/// What a kernel is compiled for: anything, or the usual - rows of one axis, no residual, weights
/// of x's type: gamma alone, or gamma and beta. What it need not look at it need not branch on.
enum class Usual { no, gamma, gamma_and_beta };

template <class T>
Usual usual(const Call<T>& call) {
  if (call.lines.rows.rank > 1 || call.residual != nullptr) return Usual::no;
  if (call.gamma == nullptr || call.wide_weights) return Usual::no;
  return call.beta != nullptr ? Usual::gamma_and_beta : Usual::gamma;
}

/// By one thread of a row: asks L2 for the row that call.ahead tells.
template <bool flat, class T>
__device__ __forceinline__ void ask_ahead(const Call<T>& call, int row) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  if (call.ahead == 0 || row + call.ahead >= call.rows) return;
  const auto next = static_cast<int>(row + call.ahead);
  ptx::bulk_prefetch(call.x + place<norm_lines::row_x, flat>(call, next),
                     static_cast<unsigned>(call.n * sizeof(T)));
#endif
}

/// A row in the registers of its threads. `whole`: every thread has all of its packs.
template <class T, int packs, Usual kind, bool whole>
struct KeptPacks {
  static constexpr bool flat = kind != Usual::no;
  using W = Accumulator<T>;
  static constexpr int width = pack_width<T>;
  using Raw = RawPack<T, width>;

  const Call<T>& call;
  int first;  // the thread's first pack, in the row
  int left;   // packs from its warp's first on
  int lanes;  // of the row's threads in the warp: pack p of the thread is p * lanes further on
  Raw s[packs];

  [[nodiscard]] __device__ __forceinline__ bool has(int p) const {
    return whole || p * lanes < left - lane();
  }
  [[nodiscard]] __device__ __forceinline__ int lane() const {
    return static_cast<int>(threadIdx.x) % 32;
  }
  [[nodiscard]] __device__ __forceinline__ std::int64_t element(int p) const {
    return std::int64_t{first} * width + p * lanes * width;
  }
  /// All loads are under way before the first is waited for.
  __device__ __forceinline__ void load(int row) {
    const T* const x = call.x + place<norm_lines::row_x, flat>(call, row);
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if constexpr (!whole) s[p] = Raw{};
      if (has(p)) s[p] = load_raw_streaming<width>(x + element(p));
    }
    if constexpr (kind == Usual::no) {
      if (call.residual != nullptr) add_residual(row);
    }
  }
  __device__ __forceinline__ void add_residual(int row) {
    const T* const residual = call.residual + place<norm_lines::row_residual>(call, row);
    T* const sum = call.sum != nullptr ? call.sum + place<norm_lines::row_sum>(call, row) : nullptr;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (!has(p)) continue;
      const Pack<T, width> r = load_wide<width>(residual + element(p));
      Pack<T, width> added = unpack(s[p]);
#pragma unroll
      for (int i = 0; i < width; ++i) added[i] = add(added[i], r[i]);
      if (sum != nullptr) store_wide(sum + element(p), added);
      s[p] = __builtin_bit_cast(Raw, added);
    }
  }
  [[nodiscard]] __device__ __forceinline__ WarpPart<W> part() const {
    return part_of_lanes<packs, width, W>(
        call.layer, lanes, left, [&](int p) { return has(p); }, [&](int p) { return widen(s[p]); });
  }
  template <bool given>
  [[nodiscard]] __device__ __forceinline__ Pack<W, width> weights(const void* tensor, int p,
                                                                  W otherwise) const {
    if constexpr (given) {
      return widen(load_raw_constant<width>(static_cast<const T*>(tensor) + element(p)));
    }
    return wide_weights(call, tensor, element(p), otherwise);
  }
  __device__ __forceinline__ void write(int row, const Scale<W>& scale) const {
    T* const y = call.y + place<norm_lines::row_y, flat>(call, row);
    constexpr bool has_beta = kind == Usual::gamma_and_beta;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (!has(p)) continue;
      const Pack<W, width> gamma = weights<flat>(call.gamma, p, W{1});
      const Pack<W, width> beta =
          weights<has_beta>(kind == Usual::gamma ? nullptr : call.beta, p, W{0});
      Pack<W, width> z = widen_again(s[p], call.zero);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        z[i] = ((z[i] - scale.center) * scale.rstd + scale.shift) * gamma[i] + beta[i];
      }
      store_raw_streaming(y + element(p), narrow<T>(z));
    }
  }
};

/// Rows of whole, aligned packs. Each warp has neighbouring packs of the row.
template <class T, int kept, int most_threads, int least_blocks, Usual kind, bool whole = false>
__global__ void __launch_bounds__(most_threads, least_blocks) norm_registers(Call<T> call) {
  start_dependent();
  using W = Accumulator<T>;
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int row = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y);
  const bool exists = whole || row < call.rows;
  const int packs = exists ? static_cast<int>(call.n / pack_width<T>) : 0;
  const int begin = thread / 32 * (32 * kept);  // of the warp's packs
  const int lanes = kind == Usual::no && threads < 32 ? threads : 32;
  const int left = whole ? 32 * kept : packs - begin;
  KeptPacks<T, kept, kind, whole> mine{call, begin + thread % 32, left, lanes, {}};
  mine.load(exists ? row : 0);
  if (whole && thread == 0) ask_ahead<kind != Usual::no>(call, row);
  const WarpPart<W> part = mine.part();
  W center = part.center;
  Moments<W> moments = part.moments;
  if (threads > 32) {
    WarpPart<W>* const parts =
        shared<RegisterShared<W>>().parts + static_cast<int>(threadIdx.y) * (threads / 32);
    if (lane_of_thread() == 0) parts[thread / 32] = part;
    __syncthreads();
    moments = join(call, parts, threads / 32, center);
  }
  const Scale<W> scale = scale_about(call, center, moments);
  if (exists && thread == 0) {
    write_statistics<kind != Usual::no>(call, row, center, moments, scale.rstd);
  }
  mine.write(row, scale);
}

/// Rows of any length at any address.
template <class T, int packs, int most_threads>
__global__ void __launch_bounds__(most_threads) norm_registers_cut(Call<T> call) {
  start_dependent();
  using W = Accumulator<T>;
  constexpr int width = pack_width<T>;
  auto& scratch = shared<RegisterShared<W>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  for_each_row(call.rows, [&](std::int64_t row, bool exists) {
    const PackedRow<T> packed(call, exists ? row : 0);
    const std::int64_t length = exists ? packed.packs() : 0;
    RawPack<T, width> s[packs] = {};
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int pack = thread + p * threads;
      if (pack < length) s[p] = packed.first_raw(pack);
    }
    W sum = 0;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const Pack<W, width> wide = widen(s[p]);
#pragma unroll
      for (int i = 0; i < width; ++i) sum += wide[i];
    }
    const W center = call.layer ? row_reduce(sum, Plus{}, scratch.sums) * call.part : W{0};
    Moments<W> moments{};
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int pack = thread + p * threads;
      if (pack >= length) continue;
      const Pack<W, width> wide = widen(s[p]);
      const bool whole = packed.whole(pack);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        if (whole || packed.exists(pack, i)) moments.add(wide[i] - center);
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
