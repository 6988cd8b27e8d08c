// SPDX-License-Identifier: Apache-2.0
// Shared by the gemm peers: the arguments of a call in BLAS terms.
//
// A BLAS matrix has contiguous rows or contiguous columns; a flag says which of the two for A
// and B, and C's rows are contiguous. C with contiguous columns is handled by computing its
// transpose, C' = B' A', which swaps the operands and flips every flag.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "rung/ops/gemm/op/gemm.hpp"
#include "rung/peers/thread_count.hpp"

namespace rung::peer {

struct Matrix {
  std::byte* data = nullptr;      // operands are only read; one type serves all three
  std::int64_t batch_stride = 0;  // bytes
  std::int64_t leading = 0;       // elements between rows, or between columns if transposed
  bool transposed = false;        // columns are contiguous instead of rows
  bool valid = false;
};

struct BlasArguments {
  std::int64_t m, n, k;
  Matrix a, b, c;
};

/// Returns the BLAS view of the last two axes. The stride of an extent of 1 is ignored.
inline Matrix matrix(const ConstTensorRef& tensor) {
  const std::int64_t rows = tensor.shape[1];
  const std::int64_t columns = tensor.shape[2];
  const std::int64_t row_stride = rows > 1 ? tensor.strides[1] : std::max<std::int64_t>(columns, 1);
  const std::int64_t column_stride = columns > 1 ? tensor.strides[2] : 1;
  Matrix result;
  result.data = static_cast<std::byte*>(const_cast<void*>(tensor.data));
  result.batch_stride = tensor.strides[0] * static_cast<std::int64_t>(size_of(tensor.dtype));
  if (column_stride == 1 && row_stride >= std::max<std::int64_t>(columns, 1)) {
    result.leading = row_stride;
    result.valid = true;
    return result;
  }
  // A single row with a stride is a single column of the transpose with that leading dimension.
  const std::int64_t step = rows > 1 ? row_stride : 1;
  const std::int64_t leading = columns > 1 ? column_stride : std::max<std::int64_t>(rows, 1);
  if (step == 1 && leading >= std::max<std::int64_t>(rows, 1)) {
    result.leading = leading;
    result.transposed = true;
    result.valid = true;
  }
  return result;
}

inline BlasArguments call_of(const Gemm::Args& args) {
  BlasArguments call{args.m(), args.n(), args.k(), matrix(args.a), matrix(args.b), matrix(args.c)};
  if (call.c.transposed) {
    std::swap(call.m, call.n);
    std::swap(call.a, call.b);
    call.a.transposed = !call.a.transposed;
    call.b.transposed = !call.b.transposed;
    call.c.transposed = false;
  }
  return call;
}

/// Rejects calls that no BLAS supports.
inline Support supports_call(const Gemm::Args& args, std::int64_t largest_integer) {
  if (args.has_epilogue()) return unsupported("a BLAS call has no bias and no activation");
  if (args.batch() == 0 || args.m() == 0 || args.n() == 0) return supported;
  if (args.k() == 0 || args.alpha == 0) {
    return unsupported("nothing is multiplied (k = 0 or alpha = 0)");
  }
  const BlasArguments call = call_of(args);
  if (!call.a.valid || !call.b.valid || !call.c.valid) {
    return unsupported("a BLAS matrix has contiguous rows or columns that do not overlap");
  }
  const std::int64_t largest =
      std::max({call.m, call.n, call.k, call.a.leading, call.b.leading, call.c.leading});
  if (largest > largest_integer) return unsupported("a size or stride exceeds its 32-bit integers");
  return supported;
}

inline constexpr std::int64_t int32_limit = std::numeric_limits<std::int32_t>::max();

/// Calls one(call) for each matrix of the batch.
template <class One>
void for_each_matrix(const Gemm::Args& args, One&& one) {
  if (args.m() == 0 || args.n() == 0) return;
  BlasArguments call = call_of(args);
  for (std::int64_t item = 0; item < args.batch(); ++item) {
    one(call);
    for (Matrix* matrix : {&call.a, &call.b, &call.c}) matrix->data += matrix->batch_stride;
  }
}

/// Arguments of y = op(A) x, for calls with n = 1 or m = 1: libraries compute these faster by gemv
/// than by gemm.
struct VectorCall {
  Matrix matrix;
  std::int64_t rows, columns;  // of op(A)
  const std::byte* x;
  std::int64_t x_step;
  std::byte* y;
  std::int64_t y_step;
};

inline VectorCall vector_call(const BlasArguments& call) {
  if (call.n == 1) {
    return {call.a,      call.m,        call.k, call.b.data, call.b.transposed ? 1 : call.b.leading,
            call.c.data, call.c.leading};
  }
  Matrix flipped = call.b;
  flipped.transposed = !flipped.transposed;
  return {flipped,     call.n, call.k, call.a.data, call.a.transposed ? call.a.leading : 1,
          call.c.data, 1};
}

/// Returns the context's thread count, or 1 for problems that more threads slow down in libraries
/// that start them for any size: 64^3 falls from 82 to 31 Gflop/s in BLIS 0.9 and from 175 to 61 in
/// Eigen 3.4 with the second thread of a Zen 5. From 256^3 on, both gain.
inline int useful_threads(const Gemm::Args& args, const Context& context) {
  const double operations =
      static_cast<double>(args.m()) * static_cast<double>(args.n()) * static_cast<double>(args.k());
  return operations < 128.0 * 128.0 * 128.0 ? 1 : context.threads();
}

}  // namespace rung::peer
