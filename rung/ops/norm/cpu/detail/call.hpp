// SPDX-License-Identifier: Apache-2.0
// norm's arguments as its CPU kernels see them. No vector code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/cpu/row_work.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/norm/shared/cpu/moments.hpp"
#include "rung/ops/norm/shared/lines.hpp"

namespace rung::norm_cpu {

/// Returns whether the rungs before row_pipeline support the arguments.
inline Support supports_contiguous_f32(const Norm::Args& args, const Context&) {
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  if (args.residual.data != nullptr) return unsupported("no residual");
  if (!norm_lines::lines_of(args).contiguous_columns()) return unsupported("contiguous rows only");
  return supported;
}

/// Stores mean and rstd, if requested, of the row whose tensors begin at `at`.
template <class V>
void store_statistics(const Norm::Args& args, const std::int64_t (&at)[6], V mean, V rstd) {
  if (args.mean.data != nullptr) static_cast<V*>(args.mean.data)[at[norm_lines::row_mean]] = mean;
  if (args.rstd.data != nullptr) static_cast<V*>(args.rstd.data)[at[norm_lines::row_rstd]] = rstd;
}

struct NormCall {
  const Norm::Args* args = nullptr;
  norm_lines::Lines lines;
  std::int64_t rows = 0;
  std::int64_t n = 0;           // elements per row
  const void* gamma = nullptr;  // contiguous, in the arithmetic type; null: none
  const void* beta = nullptr;

  explicit NormCall(const Norm::Args& a)
      : args(&a),
        lines(norm_lines::lines_of(a)),
        rows(lines.rows.size()),
        n(lines.columns.size()) {}

  /// Returns how many consecutive rows are adjacent in x, residual, y and sum; 1 if they are not.
  [[nodiscard]] std::int64_t adjacent_rows() const {
    using namespace norm_lines;
    if (lines.rows.rank == 0) return 1;
    const int inner = lines.rows.rank - 1;
    for (const int tensor : {row_x, row_residual, row_y, row_sum}) {
      if (lines.rows.strides[tensor][inner] != 1) return 1;
    }
    return lines.rows.shape[inner];
  }
  /// Returns whether rows of x, residual, y and sum are contiguous; gamma and beta may have any
  /// strides.
  [[nodiscard]] bool rows_are_contiguous() const {
    using namespace norm_lines;
    for (const int tensor : {column_x, column_residual, column_y, column_sum}) {
      if (lines.columns.rank == 1 && lines.columns.strides[tensor][0] != 1) return false;
    }
    return lines.columns.rank <= 1;
  }
};

/// Sets gamma and beta, copied to the workspace if they are strided or of another type. Returns
/// `bytes` of workspace after the copies. Defined in 080_row_pipeline.cpp.
std::byte* place_weights(NormCall& call, Context& context, std::size_t bytes);

/// Problems of fewer elements use one thread: waking a second one costs about 5 us.
inline constexpr std::int64_t min_elements = 1 << 15;

struct RowPipeline;
/// Kernels for one type of x: `rows` computes one thread's part; `widen` converts n contiguous
/// elements to the arithmetic type.
struct RowKernels {
  void (*rows)(const RowPipeline& call, const cpu::Team& team);
  void (*widen)(const void* from, std::int64_t n, void* to);
};

/// Work split over threads: rows, or blocks of a few long rows. Defined in 080_row_pipeline.cpp.
struct RowPipeline : NormCall {
  void (*kernel)(const RowPipeline& call, const cpu::Team& team);  // computes a thread's part
  bool gathered = false;  // strided rows are copied into contiguous memory
  bool streams = false;   // y exceeds the caches: use non-temporal stores
  bool shares_rows = false;
  int threads = 1;
  std::size_t scratch_bytes = 0;  // per thread; in total if shares_rows
  std::byte* scratch = nullptr;

  RowPipeline(const Norm::Args& args, Context& context, int threads);
};
/// Returns the work of row_pipeline (docs/choice.md).
Work row_pipeline_facts(const Norm::Args& args, int threads);

}  // namespace rung::norm_cpu
