// SPDX-License-Identifier: Apache-2.0
// gemm / short k
//
// Idea     where k is short, writing C is the cost. A lane keeps its columns of B, all of k, in
//          registers and goes down the rows of C; rows of A come from shared memory, where a load
//          serves all lanes.
// Changes  against simt_top: nothing is staged that is used once or twice, and a warp writes 128
//          contiguous elements of a row, whatever the alignment of C.
// Cost     C once; A once for 128 columns, B once for 64 rows.
// Limits   k up to 16.
// Tried    -
// Source   the CPU's short_k.
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

template <class P>
__global__ void __launch_bounds__(threads, 2) gemm_short_k(P p) {
  using Sum = typename P::Sum;
  constexpr int width = lane_columns<Sum>;
  struct Layout {
    alignas(16) Sum a[rows][max_k];
  };
  auto& layout = shared<Layout>();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int batch = static_cast<int>(blockIdx.z);
  const std::int64_t first_row = std::int64_t{blockIdx.y} * rows;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * 32 * width;
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);
  const auto k = static_cast<int>(p.k());
  // Neighbours of a lane are adjacent where one store writes them, else those of a warp are.
  const bool plain = p.beta == 0 && p.bias.data == nullptr && p.residual.data == nullptr &&
                     p.activation == Activation::none;
  const bool wide = plain && takes_wide_stores<width>(p);
  const int apart = wide ? 1 : 32;
  const std::int64_t column = first_column + (wide ? lane * width : lane);

#pragma unroll
  for (int i = thread; i < rows * max_k; i += threads) {
    const int row = i / max_k;
    const int step = i % max_k;
    const bool exists = first_row + row < p.m() && step < k;
    layout.a[row][step] = exists ? convert<Sum>(a(first_row + row, step)) : Sum(0);
  }
  Sum b_values[max_k][width];
#pragma unroll
  for (int step = 0; step < max_k; ++step) {
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const bool exists = step < k && column + j * apart < p.n();
      b_values[step][j] = exists ? convert<Sum>(b(step, column + j * apart)) : Sum(0);
    }
  }
  __syncthreads();

  const auto rows_left = static_cast<int>(smaller<std::int64_t>(rows, p.m() - first_row));
#pragma unroll 1
  for (int row = thread / 32; row < rows_left; row += warps) {
    Sum sums[width] = {};
#pragma unroll
    for (int step = 0; step < max_k; step += width) {
      if (step >= k) break;
      const Pack<Sum, width> factors = load_wide<width>(&layout.a[row][step]);
#pragma unroll
      for (int i = 0; i < width; ++i) {
#pragma unroll
        for (int j = 0; j < width; ++j) sums[j] += factors[i] * b_values[step + i][j];
      }
    }
    if (wide && column + width <= p.n()) {
      Pack<typename P::Out, width> values;
#pragma unroll
      for (int j = 0; j < width; ++j) values[j] = convert<typename P::Out>(p.alpha * sums[j]);
      store_wide(&p.c(batch, first_row + row, column), values);
      continue;
    }
#pragma unroll
    for (int j = 0; j < width; ++j) {
      if (column + j * apart < p.n()) {
        finish(p, batch, first_row + row, column + j * apart, sums[j]);
      }
    }
  }
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (const Support types = require_wide_types(args, context); !types) return types;
  return args.k() <= max_k ? supported : unsupported("k is longer than 16");
}

/// start + max(memory, multiply-adds of the SM with the most blocks)
double estimate(const Gemm::Args& args, const Context& context) {
  constexpr double start = 5e-6;  // 6 to 10 us for the smallest products on an H100
  constexpr double memory_share = 0.7;
  constexpr double arithmetic_share = 0.5;
  constexpr double epilogue_steps = 8;  // what an element costs beside its k
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
    launch_tiles(context,
                 {.rows = rows,
                  .columns = 32 * width,
                  .block = threads,
                  .shared_bytes = sizeof(typename P::Sum) * rows * max_k},
                 gemm_short_k<P>, p);
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
