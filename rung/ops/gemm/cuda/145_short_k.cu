// SPDX-License-Identifier: Apache-2.0
// gemm / short k
//
// Idea     where k is short, writing C is the cost. A lane keeps its columns of B, all of k, in
//          registers and goes down the rows of C; rows of A come from shared memory, where a load
//          serves all lanes.
// Changes  against simt_top: nothing is staged that is used once or twice, and a warp writes 128
//          contiguous elements of a row, whatever the alignment of C: by packs of 16 bytes, or
//          where rows begin anywhere by one element per lane and store.
// Cost     C once; A once for 128 columns, B once for 64 rows. Per row and lane, 4 k multiply-adds
//          and some 15 other instructions.
// Limits   k up to 16.
// Tried    an epilogue per element, with its addresses and its branches: 0.25 of bandwidth on an
//          H100 (EXPERIMENTS.md); pointers that move and branches per row came of it.
// Source   the CPU's short_k.
#include "rung/device/activate_all.hpp"
#include "rung/ops/gemm/cuda/detail/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int max_k = 16;
constexpr int rows = 64;
constexpr int warps = 8;
constexpr int threads = 32 * warps;

/// Columns per lane.
template <class Sum>
constexpr int lane_columns = 16 / static_cast<int>(sizeof(Sum));

/// Per SM, as the registers of so many steps of k allow.
template <int Depth, class Sum>
constexpr int short_blocks = Depth == 16        ? 2
                             : sizeof(Sum) == 8 ? 3
                                                : 4;

/// Depth: 8 or 16 steps of k in registers.
template <int Depth, class P>
__global__ void __launch_bounds__(threads, (short_blocks<Depth, typename P::Sum>))
    gemm_short_k(P p) {
  using Sum = typename P::Sum;
  using Out = typename P::Out;
  constexpr int width = lane_columns<Sum>;
  struct Layout {
    alignas(16) Sum a[rows][Depth];
  };
  auto& layout = shared<Layout>();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int batch = static_cast<int>(blockIdx.z);
  const std::int64_t first_row = std::int64_t{blockIdx.y} * rows;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * 32 * width;
  const auto rows_left = static_cast<int>(smaller<std::int64_t>(rows, p.m() - first_row));
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);
  const auto k = static_cast<int>(p.k());
  // Neighbours of a lane are adjacent where one store writes them, else those of a warp are.
  const bool wide = takes_wide_stores<width>(p);
  const int apart = wide ? 1 : 32;
  const std::int64_t column = first_column + (wide ? lane * width : lane);
  const auto columns_left = static_cast<int>(smaller<std::int64_t>(p.n() - column, 32 * width));

  const bool along_k = a.strides[1] <= a.strides[0];
#pragma unroll
  for (int i = thread; i < rows * Depth; i += threads) {
    const int row = along_k ? i / Depth : i % rows;
    const int step = along_k ? i % Depth : i / rows;
    const bool exists = row < rows_left && step < k;
    layout.a[row][step] = exists ? convert<Sum>(a(first_row + row, step)) : Sum(0);
  }
  Sum b_values[Depth][width];
#pragma unroll
  for (int step = 0; step < Depth; ++step) {
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const bool exists = step < k && j * apart < columns_left;
      b_values[step][j] = exists ? convert<Sum>(b(step, column + j * apart)) : Sum(0);
    }
  }
  __syncthreads();

  int row = thread / 32;
  Out* c = &p.c(batch, first_row + row, column);
  const Out* bias = p.bias.data == nullptr ? nullptr : &p.bias(batch, first_row + row, column);
  const std::int64_t c_apart = apart * p.c.strides[2];
  const std::int64_t bias_apart = apart * p.bias.strides[2];
  const Out* residual =
      p.residual.data == nullptr ? nullptr : &p.residual(batch, first_row + row, column);
  const std::int64_t residual_apart = apart * p.residual.strides[2];
#pragma unroll 1
  for (; row < rows_left; row += warps) {
    Pack<Sum, width> values{};
#pragma unroll
    for (int step = 0; step < Depth; step += width) {
      if (step >= k) break;
      const Pack<Sum, width> factors = load_wide<width>(&layout.a[row][step]);
#pragma unroll
      for (int i = 0; i < width; ++i) {
#pragma unroll
        for (int j = 0; j < width; ++j) values[j] += factors[i] * b_values[step + i][j];
      }
    }
#pragma unroll
    for (int j = 0; j < width; ++j) values[j] *= p.alpha;
    if (p.beta != 0) {
#pragma unroll
      for (int j = 0; j < width; ++j) {
        if (j * apart < columns_left) values[j] += p.beta * convert<Sum>(c[j * c_apart]);
      }
    }
    if (bias != nullptr) {
#pragma unroll
      for (int j = 0; j < width; ++j) {
        if (j * apart < columns_left) values[j] += convert<Sum>(bias[j * bias_apart]);
      }
      bias += warps * p.bias.strides[1];
    }
    activate_all<Out>(p.activation, values);
    if (residual != nullptr) {
#pragma unroll
      for (int j = 0; j < width; ++j) {
        if (j * apart < columns_left) values[j] += convert<Sum>(residual[j * residual_apart]);
      }
      residual += warps * p.residual.strides[1];
    }
    const Pack<Out, width> results = convert<Out>(values);
    if (wide && columns_left >= width) {
      store_wide(c, results);
    } else {
#pragma unroll
      for (int j = 0; j < width; ++j) {
        if (j * apart < columns_left) c[j * c_apart] = results[j];
      }
    }
    c += warps * p.c.strides[1];
  }
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (const Support types = require_wide_types(args, context); !types) return types;
  return args.k() <= max_k ? supported : unsupported("k is longer than 16");
}

/// start + max(memory, multiply-adds of the SM with the most blocks)
double estimate(const Gemm::Args& args, const Context& context) {
  constexpr double start = 1.5e-6;  // the latency of loads of A and B, then of stores
  constexpr double memory_share = 0.7;
  constexpr double arithmetic_share = 0.5;
  constexpr double epilogue_steps = 5;  // what an element costs beside its k
  const NominalRates rates = nominal_rates(context);
  const double sms = context.info().sms;
  const double width = 32.0 * (args.a.dtype == DType::f64 ? 2 : 4);
  const double blocks = std::ceil(static_cast<double>(args.m()) / rows) *
                        std::ceil(static_cast<double>(args.n()) / width) *
                        static_cast<double>(args.batch());
  const double block = 2 * rows * width * (static_cast<double>(args.k()) + epilogue_steps) /
                       (rates.operations_per_second / sms * arithmetic_share);
  const bool scattered = args.c.strides[2] != 1 && args.c.strides[1] != 1;
  const double memory =
      Gemm::cost(args).bytes / rates.bytes_per_second / memory_share * (scattered ? 4 : 1);
  return launch_seconds + start + std::max(memory, std::ceil(blocks / sms) * block);
}

void run(const Gemm::Args& args, Context& context) {
  with_product(args, [&]<class P>(const P& given) {
    // C with contiguous columns is made as the transposed product.
    const P p = given.c.strides[2] != 1 && given.c.strides[1] == 1 ? transpose(given) : given;
    constexpr int width = lane_columns<typename P::Sum>;
    const int depth = p.k() <= max_k / 2 ? max_k / 2 : max_k;
    launch_tiles(context,
                 {.rows = rows,
                  .columns = 32 * width,
                  .block = threads,
                  .shared_bytes = sizeof(typename P::Sum) * rows * depth},
                 depth == max_k ? gemm_short_k<max_k, P> : gemm_short_k<max_k / 2, P>, p);
  });
}

const Rung<Gemm> self{{.name = "short_k",
                       .step = 145,
                       .after = "simt_top",
                       .backend = device_backend,
                       .supports = supports,
                       .speed = {.rows = rows, .columns = 128},
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
