// SPDX-License-Identifier: Apache-2.0
// What the vector kernels of reduce are asked to do, whatever the instruction set. Kernels see four
// element types, f32, f64, i32 and i64, contiguous in one direction; the engine converts and
// gathers the rest.
#pragma once

#include <cstdint>

#include "rung/ops/reduce/cpu/detail/fold.hpp"

namespace rung::reduce_cpu {

/// How a row is read: by where it is expected to lie.
enum class Reading : std::uint8_t {
  near,     // L1 or L2: straight on
  streams,  // a little more than L1: in as many streams as the kernel has chains
  lines,    // L3: every line is asked for ahead
  pages,    // beyond: the first lines of each page are
  asked,    // the same where cpu::asks_memory_for_lines(): every line is, into L2
};

/// Rows of contiguous elements, each folded into a pair (value[r], rest[r]), in blocks that start
/// at the row's first element, so that how many rows a call has changes no bit.
struct Rows {
  const void* x;
  std::int64_t stride;  // elements from row to row
  std::int64_t rows;
  std::int64_t length;                   // elements per row
  const std::int64_t* bounds = nullptr;  // or: row r is x[bounds[r]] to x[bounds[r + 1]]
  void* value;                           // of the wide type, overwritten
  void* rest;
  bool arg = false;  // rest becomes the position in the row
  Reading reading = Reading::near;
  /// Whether short rows are put together several at a time. It decides in which order, so it must
  /// follow from the call's shape.
  bool grouped = false;
};

/// Contiguous columns, folded down the rows into pairs that `first` says to begin with.
struct Columns {
  const void* x;
  std::int64_t stride;  // elements from row to row
  std::int64_t rows;
  std::int64_t columns;  // at most columns_at_most
  void* scratch;         // 16 * columns_at_most bytes, aligned to vectors
  void* value;           // of the wide type, with room up to whole vectors
  void* rest;
  bool first = true;      // overwrite the pairs, or continue them
  bool arg = false;       // rest becomes the row, counted from...
  std::int64_t row0 = 0;  // ... this number for the first
  // Where the rows are all there are and max_direct_rows at most: results of x's floating type,
  // contiguous, instead of pairs.
  void* y = nullptr;
  double divisor = 0;  // of a mean; 0: none
  bool root = false;   // of a norm
};
/// Rows that are added up in lanes before these go into the wide type.
inline constexpr std::int64_t max_direct_rows = 512;
/// 16 KiB of f32 sums stay in L1 beside eight streams of rows.
inline constexpr std::int64_t columns_at_most = 4096;

/// The elements that one block of a row has at most, for the engine's cuts: a multiple of every
/// target's block.
inline constexpr std::int64_t block_multiple = 8192;

/// Copies `count` elements, `stride` apart, to contiguous ones of the type that kernels work on:
/// f32 for the small floats, i32 for integers up to 32 bits, else T itself.
void gather(DType from, const void* x, std::int64_t stride, std::int64_t count, void* to);

/// The type that elements of `x` are folded as.
constexpr DType folded_as(DType x) {
  if (x == DType::f16 || x == DType::bf16) return DType::f32;
  return is_floating(x) || x == DType::i64 ? x : DType::i32;
}

/// By the element type that kernels know; for floating types Fold::squares too.
void fold_rows(DType element, Fold fold, const Rows& rows);
void fold_columns(DType element, Fold fold, const Columns& columns);

}  // namespace rung::reduce_cpu
