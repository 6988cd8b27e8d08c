// SPDX-License-Identifier: Apache-2.0
// The host side that gemm's CUDA rungs share: what they support, what they move, how long they
// take.
#pragma once

#include <cmath>
#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/ops/gemm/cuda/detail/product.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

inline Support require_f32(const Gemm::Args& args, const Context&) {
  return args.a.dtype == DType::f32 ? supported : unsupported("only f32 operands");
}

/// Operands whose rows are contiguous and start at multiples of 16 bytes, for float4 loads.
inline bool has_aligned_rows(const ConstTensorRef& matrix) {
  constexpr std::int64_t width = 4;
  return (matrix.strides[2] == 1 || matrix.shape[2] <= 1) &&
         (matrix.strides[1] % width == 0 || matrix.shape[1] <= 1) &&
         (matrix.strides[0] % width == 0 || matrix.shape[0] <= 1) &&
         reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0;
}

inline Support require_aligned_rows(const Gemm::Args& args, const Context& context) {
  if (const Support f32 = require_f32(args, context); !f32) return f32;
  if (!has_aligned_rows(args.a)) {
    return unsupported("A's rows must be contiguous and start at multiples of 16 bytes");
  }
  if (!has_aligned_rows(args.b)) {
    return unsupported("B's rows must be contiguous and start at multiples of 16 bytes");
  }
  return supported;
}

/// What a kernel moves when every rows x columns tile of C reads its strips of A and B once:
/// A is read once for each column of tiles, B once for each row of tiles.
inline Cost tiled_traffic(const Gemm::Args& args, std::int64_t rows, std::int64_t columns) {
  Cost cost = Gemm::cost(args);
  const auto batch = static_cast<double>(args.batch());
  const auto m = static_cast<double>(args.m());
  const auto n = static_cast<double>(args.n());
  const double k = args.alpha == 0 ? 0.0 : static_cast<double>(args.k());
  const double a_reads = static_cast<double>(tiles_of(args.n(), columns));
  const double b_reads = static_cast<double>(tiles_of(args.m(), rows));
  const double c_accesses = args.beta != 0 ? 2.0 : 1.0;
  const double bias = args.bias.data != nullptr ? 1.0 : 0.0;
  cost.bytes =
      batch * ((m * k * a_reads + k * n * b_reads) * static_cast<double>(size_of(args.a.dtype)) +
               m * n * (c_accesses + bias) * static_cast<double>(size_of(args.c.dtype)));
  return cost;
}

/// How a kernel does on a device it fills: for tiled_seconds.
struct Speed {
  double fraction_of_peak;  // of the multiply-add rate, on large matrices
  int blocks_per_multiprocessor = 1;
};

/// Estimated time of a tiled kernel. The multiprocessor with the most blocks decides: with 133
/// tiles on 132 of them, one works twice as long as it would with 132. Fewer blocks than a
/// multiprocessor has room for hide less latency. No kernel beats its compulsory traffic or a
/// launch.
inline double tiled_seconds(const Gemm::Args& args, const Context& context, std::int64_t rows,
                            std::int64_t columns, Speed speed, std::int64_t slices = 1) {
  constexpr double launch_seconds = 4e-6;
  constexpr double block_start_steps = 32;  // steps of k that filling and draining a block cost
  const double tiles = static_cast<double>(tiles_of(args.m(), rows)) *
                       static_cast<double>(tiles_of(args.n(), columns)) *
                       static_cast<double>(args.batch() * slices);
  const double multiprocessors = context.info().multiprocessors;
  const double most = std::ceil(tiles / multiprocessors);
  const double room = speed.blocks_per_multiprocessor;
  const double hidden = 0.5 + 0.5 * smaller(1.0, most / room);
  const double k = args.alpha == 0 ? 0.0 : static_cast<double>(args.k() / slices);
  const NominalRates rates = nominal_rates(context);
  const double rate =
      rates.operations_per_second / multiprocessors * speed.fraction_of_peak * hidden;
  const double compute =
      most * 2.0 * static_cast<double>(rows * columns) * (k + block_start_steps) / rate;
  return launch_seconds + larger(compute, Gemm::cost(args).bytes / rates.bytes_per_second);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
