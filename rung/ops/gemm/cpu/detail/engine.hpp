// SPDX-License-Identifier: Apache-2.0
//
// Untyped arguments of a call, and the table of packed_simd's kernels (tiles, packing, epilogue)
// for the instruction set in use, which later rungs call as well.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rung/core/dtype.hpp"
#include "rung/core/integer.hpp"
#include "rung/ops/gemm/op/gemm.hpp"

namespace rung::gemm_cpu {

struct Operand {
  const void* data;
  std::int64_t row, column, batch;  // strides in elements
};
struct Output {
  void* data;
  std::int64_t row, column, batch;
};

/// Rejects 8-bit operands, which the rung `bytes` supports.
inline Support require_wide_types(const Gemm::Args& args, const Context&) {
  return args.has_bytes() ? unsupported("8-bit operands") : supported;
}

/// Calls f<T>() for the type T in which sums of products of `in` are kept.
template <class F>
decltype(auto) with_sums(DType in, F&& f) {
  return in == DType::f64 ? f.template operator()<double>() : f.template operator()<float>();
}

/// Arguments of a valid call, transposed if needed so that C has contiguous rows, where it has a
/// contiguous axis.
struct RowMajorProduct {
  DType in, out;
  Activation activation;
  std::int64_t batch, m, n, k;
  Operand a, b;
  Output c;
  Operand bias, residual;  // data is null if absent
  double alpha, beta;

  [[nodiscard]] bool has_epilogue() const {
    return bias.data != nullptr || residual.data != nullptr || activation != Activation::none;
  }
  /// Returns whether kernels may write C directly: it has the accumulators' type and contiguous
  /// rows.
  [[nodiscard]] bool direct() const {
    return c.column == 1 && (out == DType::f64 || out == DType::f32);
  }
  /// Returns the number of steps of k to compute: 0 if alpha = 0, because A and B are then not
  /// read.
  [[nodiscard]] std::int64_t depth() const { return alpha == 0.0 ? 0 : k; }
};

inline RowMajorProduct row_major_product(const Gemm::Args& args) {
  const auto matrix = [](const auto& t) {
    // The stride of an axis of extent 1 is unused: 1 makes it count as contiguous.
    return Operand{t.data, t.shape[1] == 1 ? 1 : t.strides[1], t.shape[2] == 1 ? 1 : t.strides[2],
                   t.shape[0] == 1 ? 0 : t.strides[0]};
  };
  RowMajorProduct call{args.a.dtype,
                       args.c.dtype,
                       args.activation,
                       args.c.shape[0],
                       args.c.shape[1],
                       args.c.shape[2],
                       args.a.shape[2],
                       matrix(args.a),
                       matrix(args.b),
                       {},
                       {},
                       {},
                       args.alpha,
                       args.beta};
  const Operand c = matrix(args.c);
  call.c = {args.c.data, c.row, c.column, c.batch};
  const auto addend = [](const ConstTensorRef& t) {
    if (t.data == nullptr) return Operand{nullptr, 0, 0, 0};
    return Operand{t.data, t.strides[1], t.strides[2], t.strides[0]};
  };
  call.bias = addend(args.bias);
  call.residual = addend(args.residual);
  // C' = (A B)' = B' A'. A single column becomes a single row, a column-major C a row-major one.
  const bool turn = call.n == 1 ? call.m != 1 : call.c.column != 1 && call.c.row == 1;
  if (turn) {
    std::swap(call.m, call.n);
    std::swap(call.a, call.b);
    std::swap(call.a.row, call.a.column);
    std::swap(call.b.row, call.b.column);
    std::swap(call.c.row, call.c.column);
    std::swap(call.bias.row, call.bias.column);
    std::swap(call.residual.row, call.residual.column);
  }
  return call;
}

/// Packing or prefetching that a tile interleaves with its product, in the shadow of its FMAs,
/// every packing_steps steps of k: packs `rows` rows of a strip of B, `row_step` apart, or
/// prefetches `lines` cache lines from `soon` on into L2. Only full packed tiles do it.
template <class T>
struct InterleavedPacking {
  int rows = 0;
  const T* row_from = nullptr;
  std::int64_t row_step = 0;
  T* row_to = nullptr;
  int lines = 0;
  const T* soon = nullptr;
};
constexpr int packing_steps = 8;

/// Arguments of one tile of C = alpha * A * B + beta * C; strides in elements, rows of C and B
/// contiguous.
template <class T>
struct TileArgs {
  std::int64_t k;
  const T* a;
  std::int64_t a_row, a_column;
  const T* b;
  std::int64_t b_row;
  T* c;
  std::int64_t c_row;
  int columns;  // valid columns: only the last vector can be partial
  T alpha, beta;
  const InterleavedPacking<T>* background_packing = nullptr;
};
template <class T>
using TileFunction = void(const TileArgs<T>&);

/// Source of a tile's operands. A packed panel is contiguous: k columns of the tile's rows of A, or
/// k rows of its full vectors of B. A strided operand is read in place: A with any strides, B with
/// contiguous rows.
enum class Source : std::uint8_t { packed, strided };

/// Type of pack_panels and copy_rows of rung/cpu/pack-inl.hpp.
template <class T>
using PackFunction = void(const void* from, std::int64_t row, std::int64_t column,
                          std::int64_t count, std::int64_t readable, int width, std::int64_t k,
                          T* to);
template <class T>
using CopyFunction = void(const void* from, std::int64_t from_row, std::int64_t rows,
                          std::int64_t k, T* to, std::int64_t to_row);

/// Arguments of the epilogue of a block of sums: C = act(sums + beta * C + bias) + residual, with
/// C's type and strides.
template <class T>
struct FinishArgs {
  const T* sums;
  std::int64_t sums_row;
  std::int64_t rows, columns;
  void* c;
  std::int64_t c_row, c_column;
  T beta;
  const void* bias;  // null if absent
  std::int64_t bias_row, bias_column;
  Activation activation;
  const void* residual = nullptr;  // null if absent
  std::int64_t residual_row = 0, residual_column = 0;
};
template <class T>
using FinishFunction = void(const FinishArgs<T>&);

/// Table of kernels for sums of type T (f32 or f64) on one instruction set.
template <class T>
struct Kernels {
  int lanes;             // per vector
  int tile_rows;         // the general tile is tile_rows x 2 vectors
  int narrow_tile_rows;  // maximum rows of a tile one vector wide
  bool prefetches;       // the general tile prefetches packed A and B in software
  /// tiles[a_source][b_source][vectors - 1][rows - 1]
  TileFunction<T>* const* tiles[2][2][2];
  PackFunction<T>* pack[4];  // by DType of the matrix: f32, f64, f16, bf16
  CopyFunction<T>* copy[4];
  FinishFunction<T>* finish[4];  // by DType of C

  [[nodiscard]] TileFunction<T>* tile(Source a, Source b, int vectors, std::int64_t rows) const {
    return tiles[static_cast<int>(a)][static_cast<int>(b)][vectors - 1][rows - 1];
  }
  [[nodiscard]] int tile_columns() const { return 2 * lanes; }
  /// Returns whether a row of a strip of B is one cache line (AVX2) instead of two.
  [[nodiscard]] bool narrow_strips() const { return tile_columns() * sizeof(T) <= 64; }
};

/// Returns the kernels of the instruction set in use (rung/cpu/isa.hpp).
template <class T>
const Kernels<T>& kernels();
template <>
const Kernels<float>& kernels<float>();
template <>
const Kernels<double>& kernels<double>();

inline std::size_t offset_bytes(std::int64_t elements, DType dtype) {
  return static_cast<std::size_t>(elements) * size_of(dtype);
}
inline const void* at(const Operand& x, DType dtype, std::int64_t batch, std::int64_t row,
                      std::int64_t column) {
  return static_cast<const char*>(x.data) +
         offset_bytes(batch * x.batch + row * x.row + column * x.column, dtype);
}
inline void* at(const Output& x, DType dtype, std::int64_t batch, std::int64_t row,
                std::int64_t column) {
  return static_cast<char*>(x.data) +
         offset_bytes(batch * x.batch + row * x.row + column * x.column, dtype);
}

}  // namespace rung::gemm_cpu
