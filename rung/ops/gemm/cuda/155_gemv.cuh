// SPDX-License-Identifier: Apache-2.0
// gemm / gemv: what the host decides of a call, and who else runs its kernels: dots.
//
// Idea, Changes, Cost and Limits stand in 155_gemv.cu, whose rung this is a part of.
#pragma once

#include "rung/device/collectives.hpp"
#include "rung/ops/gemm/cuda/detail/slices.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

constexpr int gemv_threads = 256;
constexpr int gemv_warps = gemv_threads / warp_size;
constexpr int gemv_blocks = 3;               // per SM
constexpr std::int64_t gemv_tickets = 4096;  // sums, or strips of them, that several blocks share

/// Elements per load, and loads per thread that are in flight together.
template <class T, bool Wide>
constexpr int gemv_size = Wide ? 16 / static_cast<int>(sizeof(T)) : 1;
template <class T, bool Wide>
constexpr int gemv_loads = Wide || sizeof(T) == 8 ? 8 : 16;

/// What the host decides of a call.
struct GemvPlan {
  bool lines =
      false;          // lanes are along k: C has any number of rows; else they are along n: one row
  bool wide = false;  // loads of 16 bytes
  int lanes = 1;      // of a warp that are along n. Lines: 0, a warp per element of C; 1, blocks
  int splits = 1;     // blocks that share a strip of C
  std::int64_t strips = 1;  // of a matrix: what a block makes, perhaps with others
  std::int64_t depth = 0;   // of k, per block
  double seconds = 0;
};

template <class T>
bool begins_wide(const T* data, std::int64_t line_stride, std::int64_t lines,
                 std::int64_t batch_stride, std::int64_t batch) {
  constexpr std::int64_t width = 16 / static_cast<std::int64_t>(sizeof(T));
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 &&
         (lines <= 1 || line_stride % width == 0) && (batch <= 1 || batch_stride % width == 0);
}

/// In 155_gemv.cu.
void run_gemv(Context& context, const Finish<float>& finish, const GemvPlan& plan);
void run_gemv(Context& context, const Finish<double>& finish, const GemvPlan& plan);
void run_gemv(Context& context, const Finish<f16>& finish, const GemvPlan& plan);
void run_gemv(Context& context, const Finish<bf16>& finish, const GemvPlan& plan);

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
