// SPDX-License-Identifier: Apache-2.0
// A call of norm as its CPU kernels see it. No vector code here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/cpu/row_work.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/norm/shared/cpu/moments.hpp"
#include "rung/ops/norm/shared/lines.hpp"

namespace rung::norm_cpu {

/// Support of the steps before row_pipeline: the case that their kernels are about.
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
  const void* gamma = nullptr;  // contiguous, in the arithmetic type; or null
  const void* beta = nullptr;

  explicit NormCall(const Norm::Args& a)
      : args(&a),
        lines(norm_lines::lines_of(a)),
        rows(lines.rows.size()),
        n(lines.columns.size()) {}

  /// Returns the number of rows in succession that are adjacent in x and all that is as large.
  [[nodiscard]] std::int64_t adjacent_rows() const {
    using namespace norm_lines;
    if (lines.rows.rank == 0) return 1;
    const int inner = lines.rows.rank - 1;
    for (const int tensor : {row_x, row_residual, row_y, row_sum}) {
      if (lines.rows.strides[tensor][inner] != 1) return 1;
    }
    return lines.rows.shape[inner];
  }
  /// Each tensor's rows are contiguous; gamma and beta may be anything.
  [[nodiscard]] bool rows_are_contiguous() const {
    using namespace norm_lines;
    for (const int tensor : {column_x, column_residual, column_y, column_sum}) {
      if (lines.columns.rank == 1 && lines.columns.strides[tensor][0] != 1) return false;
    }
    return lines.columns.rank <= 1;
  }
};

/// Sets gamma and beta of the call, copied where they are not contiguous or of another type.
/// Returns `bytes` of workspace behind the copies. Defined in 080_row_pipeline.cpp.
std::byte* place_weights(NormCall& call, Context& context, std::size_t bytes);

/// Calls of fewer elements stay on one thread: a second one costs some 5 us.
inline constexpr std::int64_t min_elements = 1 << 15;

struct RowPipeline;
/// Kernels for x of one type: of a thread's share; of n contiguous elements, converted to the type
/// of the arithmetic.
struct RowKernels {
  void (*rows)(const RowPipeline& call, const cpu::Team& team);
  void (*widen)(const void* from, std::int64_t n, void* to);
};

/// A call divided among threads: rows, or, of a few long ones, blocks of all the rows. Defined in
/// 080_row_pipeline.cpp.
struct RowPipeline : NormCall {
  void (*kernel)(const RowPipeline& call, const cpu::Team& team);  // computes a thread's share
  bool gathered = false;  // rows that are not contiguous are copied into memory that is
  bool streams = false;   // y would not stay in the caches: non-temporal stores
  bool shares_rows = false;
  int threads = 1;
  std::size_t scratch_bytes = 0;  // per thread, or of all if they share rows
  std::byte* scratch = nullptr;

  RowPipeline(const Norm::Args& args, Context& context, int threads);
};
/// Returns its facts.
Work row_pipeline_facts(const Norm::Args& args, int threads);

}  // namespace rung::norm_cpu
