// SPDX-License-Identifier: Apache-2.0
// norm's rows in clusters: what the warps of a cluster exchange, and a thread's packs of rows in
// the ring and of gamma and beta in registers.
#pragma once

#include "rung/device/ptx_async_copy.hpp"
#include "rung/device/ptx_mbarrier.hpp"
#include "rung/ops/norm/cuda/detail/parts.hpp"
#include "rung/ops/norm/cuda/detail/usual.hpp"
#include "rung/ops/norm/cuda/detail/widen.hpp"

namespace rung::norm_cuda::inline RUNG_TARGET {

inline constexpr int most_blocks = 8;
inline constexpr int cluster_threads = 512;  // at most; of 128 registers each
inline constexpr int cluster_packs = 8;      // a thread: gamma and beta take half of its registers
/// A warp sends its part of a row when it has finished the row before the one before: four rows'
/// parts may be under way.
inline constexpr int turns = 4;

/// The ring lies behind it, at a multiple of 128 bytes: lines of memory are lines there, too.
template <class W>
struct alignas(128) ClusterShared {
  WarpPart<W> parts[turns][most_blocks * cluster_threads / 32];
  ptx::MemoryBarrier sent[turns];
};

/// How rows lie in the ring, and on blocks.
struct RingShape {
  int stages;  // 2, 3 or 4
  int part;    // packs of a row that a block has
};

/// What a kernel is compiled for: anything; or rows of one axis without a residual, gamma and beta
/// of x's type; or such rows that, moreover, fill all threads of a cluster.
enum class ClusterKind { any, usual, whole };

/// This thread's packs of rows: it copies into the ring what it will read itself, and so waits for
/// nobody there.
template <class T, ClusterKind kind>
struct ClusterRows {
  using W = Accumulator<T>;
  static constexpr int width = pack_width<T>;
  static constexpr bool plain = kind != ClusterKind::any;
  using Raw = RawPack<T, width>;

  const Call<T>& call;
  const RingShape& shape;
  Pack<T, width>* slots;  // the thread's first
  int first;              // of its packs, in a row
  int left;               // of the block's packs, how many from its warp's first on
  Raw gamma[cluster_packs];
  Raw beta[cluster_packs];

  [[nodiscard]] __device__ __forceinline__ bool has(int p) const {
    return kind == ClusterKind::whole || p * 32 < left - lane_of_thread();
  }
  [[nodiscard]] __device__ __forceinline__ std::int64_t element(int p) const {
    return std::int64_t{first} * width + p * 32 * width;
  }
  [[nodiscard]] __device__ __forceinline__ Pack<T, width>& slot(int stage, int p) const {
    return slots[stage * shape.part + p * 32];
  }
  /// All of a row's packs, before the first is used; zeros where there are none.
  __device__ __forceinline__ void read(Raw (&s)[cluster_packs], int stage) const {
#pragma unroll
    for (int p = 0; p < cluster_packs; ++p) {
      if constexpr (kind != ClusterKind::whole) s[p] = Raw{};
      if (has(p)) s[p] = load_raw<width>(slot(stage, p).at);
    }
  }
  __device__ __forceinline__ void keep_weights() {
#pragma unroll
    for (int p = 0; p < cluster_packs; ++p) {
      if ((!plain && call.wide_weights) || !has(p)) continue;
      if (plain || call.gamma != nullptr) {
        gamma[p] = load_raw<width>(static_cast<const T*>(call.gamma) + element(p));
      }
      if (plain || call.beta != nullptr) {
        beta[p] = load_raw<width>(static_cast<const T*>(call.beta) + element(p));
      }
    }
  }
  /// `zero` differs from row to row for all that the compiler knows: it must not widen all packs in
  /// front of the loop.
  [[nodiscard]] __device__ __forceinline__ Pack<W, width> weights(const void* given,
                                                                  const Raw& kept, int p,
                                                                  unsigned zero,
                                                                  W otherwise) const {
    if (!plain && (given == nullptr || call.wide_weights)) {
      return wide_weights(call, given, element(p), otherwise);
    }
    return widen_again(kept, zero);
  }
  /// Starts copying a row; a group of copies in any case.
  __device__ __forceinline__ void fetch(int row, int stage) const {
    if (row < call.rows) {
      const T* const x = call.x + place<norm_lines::row_x, plain>(call, row);
#pragma unroll
      for (int p = 0; p < cluster_packs; ++p) {
        if (has(p)) ptx::async_copy<16>(&slot(stage, p), x + element(p));
      }
    }
    ptx::async_commit();
  }
  /// s takes the place of x.
  __device__ __forceinline__ void add_residual(int row, int stage) const {
    const T* const residual = call.residual + place<norm_lines::row_residual>(call, row);
    T* const sum = call.sum != nullptr ? call.sum + place<norm_lines::row_sum>(call, row) : nullptr;
#pragma unroll
    for (int p = 0; p < cluster_packs; ++p) {
      if (!has(p)) continue;
      Pack<T, width> s = load_wide<width>(slot(stage, p).at);
      const Pack<T, width> r = load_wide<width>(residual + element(p));
#pragma unroll
      for (int i = 0; i < width; ++i) s[i] = add(s[i], r[i]);
      if (sum != nullptr) store_wide(sum + element(p), s);
      store_wide(slot(stage, p).at, s);
    }
  }
  __device__ __forceinline__ void write(int row, int stage, const Scale<W>& scale) const {
    const unsigned zero = call.zero & static_cast<unsigned>(row);
    T* const y = call.y + place<norm_lines::row_y, plain>(call, row);
    Raw s[cluster_packs];
    read(s, stage);
#pragma unroll
    for (int p = 0; p < cluster_packs; ++p) {
      if (!has(p)) continue;
      const Pack<W, width> g = weights(call.gamma, gamma[p], p, zero, W{1});
      const Pack<W, width> b = weights(call.beta, beta[p], p, zero, W{0});
      Pack<W, width> z = widen(s[p]);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        z[i] = ((z[i] - scale.center) * scale.rstd + scale.shift) * g[i] + b[i];
      }
      store_raw(y + element(p), narrow<T>(z));
    }
  }
};

}  // namespace rung::norm_cuda::inline RUNG_TARGET
