// SPDX-License-Identifier: Apache-2.0
// Kernels that several rungs of reduce call, dispatched to the instruction set in use: along rows
// (050_blocks.cpp), along short rows (shapes/short_rows.cpp), down columns (shapes/columns.cpp).
// Element types are f32, f64, i32 and i64, contiguous in one direction; cpu::gather() converts
// others.
#pragma once

#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/cpu/gather.hpp"
#include "rung/cpu/prefetch.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/reduce/cpu/detail/fold.hpp"

namespace rung::reduce_cpu {

/// Order of loads and prefetching, by the memory level where x is expected.
enum class Reading : std::uint8_t {
  near,     // L1 or L2: in order, no prefetch
  streams,  // slightly more than L1: one stream per accumulator of the kernel
  lines,    // L3: every line is prefetched
  pages,    // memory: the first lines of each page are prefetched
  into_l2,  // memory, if cpu::prefetches_into_l2(): every line, into L2
};
Reading reading_of(double bytes);

/// Contiguous rows, each folded into a pair (value[r], rest[r]), in blocks that start at the row's
/// first element: results do not depend on the number of rows per kernel call.
struct Rows {
  const void* x;
  std::int64_t stride;  // elements between row starts
  std::int64_t rows;
  std::int64_t length;                   // elements per row
  const std::int64_t* bounds = nullptr;  // if not null, row r is [bounds[r], bounds[r + 1]) of x
  void* value;                           // pointer to the wide type; overwritten
  void* rest;
  bool arg = false;  // rest receives the position within the row
  Reading reading = Reading::near;
};
void fold_rows(DType element, Fold fold, const Rows& rows);
/// Folds rows of at most four vectors, several at a time; no positions, no bounds. Returns false,
/// and does nothing, for longer rows, without vector instructions, and for products of integers.
bool fold_short_rows(DType element, Fold fold, const Rows& rows);

/// Contiguous columns, folded over the rows into pairs.
struct Columns {
  const void* x;
  std::int64_t stride;  // elements between row starts
  std::int64_t rows;
  std::int64_t columns;  // at most columns_at_most
  void* scratch;         // 16 * columns_at_most bytes, aligned to vectors
  void* value;           // pointer to the wide type, padded to whole vectors
  void* rest;
  bool first = true;      // overwrite the pairs; false: accumulate into them
  bool arg = false;       // rest receives the row number
  std::int64_t row0 = 0;  // number of the first row
  // If not null, results of x's floating type are stored contiguously instead of pairs. Requires at
  // most max_direct_rows rows, all in this kernel call.
  void* y = nullptr;
  double divisor = 0;  // divisor of a mean; 0: no division
  bool root = false;   // take the square root (norms)
};
/// Rows that a lane accumulates before its total is added to the wide type.
inline constexpr std::int64_t max_direct_rows = 512;
/// Maximum columns per kernel call: 16 KiB of f32 sums stay in L1 beside eight streams of rows.
inline constexpr std::int64_t columns_at_most = 4096;
void fold_columns(DType element, Fold fold, const Columns& columns);

/// Returns whether results are adjacent and reduced axes have larger strides.
bool has_columns(const Reduce::Args& args);
/// Reduces a problem for which has_columns() is true, with up to `threads` threads.
void reduce_columns(const Reduce::Args& args, Context& context, int threads);
/// Reduces few rows of contiguous columns with little overhead. Returns false, and does nothing, if
/// the problem does not qualify.
bool reduce_one_tile(const Reduce::Args& args, Context& context);

/// Returns whether the terms of a result are contiguous elements of a type that kernels take.
inline bool has_plain_rows(const Reduce::Args& args) {
  return args.terms.is_contiguous() && cpu::gathered_type(args.x.dtype) == args.x.dtype;
}

/// Calls f.operator()<W>() with the wide type of x.
template <class F>
void with_wide(DType x, F&& f) {
  is_floating(x) ? f.template operator()<double>() : f.template operator()<std::int64_t>();
}

}  // namespace rung::reduce_cpu
