// SPDX-License-Identifier: Apache-2.0
// norm_backward / adjacent rows
//
// Idea     If the normalized axis is not the innermost one, consecutive rows are adjacent in
//          memory: a lane of a warp owns one of 32 rows, and the eight warps of a block split the
//          columns, so loads are coalesced. Warps combine the sums of a row in shared memory. A
//          column belongs to one warp, which reduces its 32 rows by shuffles and accumulates over
//          the block's rows in shared memory.
// Changes  against block_per_row: coalesced access; two kernels, not four.
// Cost     x and dy are read twice, the second time from a cache if 32 rows fit; x is read two more
//          times if mean and rstd are not given. Ten shuffles per 32 elements.
// Limits   Any strides; 2 n sums in shared memory if gradients of weights are requested, about
//          28000 columns of f32. Few rows use few blocks.
// Source   softmax's wide_columns.
#include <cmath>

#include "rung/core/bounds.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/norm_backward/cuda/detail/norm_backward.hpp"

namespace rung {
namespace {

using namespace norm_backward_cuda;

constexpr int warps = 8;
constexpr int batch = 4;  // columns with loads in flight per warp

/// Exchange buffer; the column sums, [2][n], follow.
template <class W>
struct AdjacentShared {
  Moments<W> of_warp[warps][warp_size];
};

/// Returns the two sums of each row over all warps; lane x gets those of row x.
template <class W>
__device__ __forceinline__ Moments<W> reduce_rows(Moments<W> value, AdjacentShared<W>& scratch) {
  scratch.of_warp[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  Moments<W> sum = scratch.of_warp[0][threadIdx.x];
#pragma unroll
  for (int warp = 1; warp < warps; ++warp) {
    sum = AddMoments{}(sum, scratch.of_warp[warp][threadIdx.x]);
  }
  __syncthreads();
  return sum;
}

template <class T>
__global__ void __launch_bounds__(warp_size* warps)
    norm_backward_adjacent_rows(const __grid_constant__ NormGradientArguments<T> call) {
  start_dependent();
  using W = Accumulator<T>;
  auto& scratch = shared<AdjacentShared<W>>();
  auto* const dgamma = reinterpret_cast<W*>(&scratch + 1);
  W* const dbeta = dgamma + call.n;
  const auto& columns = call.lines.columns;
  const int lane = static_cast<int>(threadIdx.x);
  const int warp = static_cast<int>(threadIdx.y);
  if (call.sums != nullptr) {
    for (std::int64_t i = warp; lane == 0 && i < call.n; i += warps) dgamma[i] = dbeta[i] = 0;
  }
  for (std::int64_t first = std::int64_t{blockIdx.x} * warp_size; first < call.rows;
       first += std::int64_t{gridDim.x} * warp_size) {
    const bool exists = first + lane < call.rows;
    std::int64_t at[5] = {};
    if (exists) call.lines.rows.offsets(first + lane, at);
    const T* const x_row = call.x + at[NormBackward::row_x];
    const T* const dy_row = call.dy + at[NormBackward::row_dy];
    const auto x = [&](std::int64_t i) {
      if (!exists) return W{0};
      return convert<W>(x_row[columns.template offset<NormBackward::column_x>(i)]);
    };
    // Loads every eighth column from `begin` on; zeros past the end.
    const auto load = [&](std::int64_t begin, W(&x_values)[batch], W(&dy_values)[batch]) {
#pragma unroll
      for (int b = 0; b < batch; ++b) {
        const std::int64_t i = begin + b * warps;
        x_values[b] = dy_values[b] = 0;
        if (!exists || i >= call.n) continue;
        x_values[b] = x(i);
        dy_values[b] = convert<W>(dy_row[columns.template offset<NormBackward::column_dy>(i)]);
      }
    };
    const auto gamma = [&](std::int64_t i) {
      return gamma_at(call, columns.template offset<NormBackward::column_gamma>(i));
    };
    Scale<W> scale{};
    if (call.rstd != nullptr) {
      if (exists) scale = given_scale(call, at);
    } else {
      W center = 0;
      if (call.layer) {
        Moments<W> sum{};
#pragma unroll 4
        for (std::int64_t i = warp; i < call.n; i += warps) sum.rest += x(i) * call.factors.shrink;
        center = center_near(reduce_rows(sum, scratch).rest * call.factors.shrunk_part);
      }
      Moments<W> moments{};
#pragma unroll 4
      for (std::int64_t i = warp; i < call.n; i += warps) {
        moments.add(x(i) - center, call.factors.shrink);
      }
      scale = scale_about(call, center, reduce_rows(moments, scratch));
      if (!exists) scale = Scale<W>{};
    }
    Moments<W> means{};  // sums of g and of g z
    for (std::int64_t begin = warp; begin < call.n; begin += batch * warps) {
      W z[batch];
      W dy[batch];
      load(begin, z, dy);
#pragma unroll
      for (int b = 0; b < batch; ++b) {
        const std::int64_t i = begin + b * warps;
        if (i >= call.n) break;
        z[b] = (z[b] - scale.center) * scale.rstd + scale.shift;
        const W g = dy[b] * gamma(i);
        means.rest += g;
        means.squares += g * z[b];
        if (call.sums == nullptr) continue;
        // A row past the end adds nothing: its dy and z are 0.
        const W of_gamma = warp_reduce(dy[b] * z[b], Plus{});
        const W of_beta = warp_reduce(dy[b], Plus{});
        if (lane != 0) continue;
        dgamma[i] += of_gamma;
        dbeta[i] += of_beta;
      }
    }
    means = reduce_rows(means, scratch);
    const W mean_g = call.layer ? means.rest * call.factors.part : W{0};
    const W mean_gz = means.squares * call.factors.part;
    T* const dx_row = call.dx + at[NormBackward::row_dx];
    for (std::int64_t begin = warp; exists && begin < call.n; begin += batch * warps) {
      W z[batch];
      W dy[batch];
      load(begin, z, dy);  // issue all loads before the first store, which may alias them
#pragma unroll
      for (int b = 0; b < batch; ++b) {
        const std::int64_t i = begin + b * warps;
        if (i >= call.n) break;
        z[b] = (z[b] - scale.center) * scale.rstd + scale.shift;
        const W dx = scale.rstd * (dy[b] * gamma(i) - mean_g - z[b] * mean_gz);
        dx_row[columns.template offset<NormBackward::column_dx>(i)] = convert<T>(dx);
      }
    }
  }
  if (call.sums == nullptr) return;
  __syncthreads();
  W* const sums = call.sums + std::int64_t{blockIdx.x} * 2 * call.n;
  for (std::int64_t i = warp * warp_size + lane; i < 2 * call.n; i += warp_size * warps) {
    sums[i] = dgamma[i];
  }
}

template <class W>
std::size_t shared_bytes_of(std::int64_t n, bool sums) {
  return sizeof(AdjacentShared<W>) + (sums ? 2 * static_cast<std::size_t>(n) * sizeof(W) : 0);
}

Support supports(const NormBackward::Args& args, const Context& context) {
  const std::int64_t n = NormBackward::lines_of(args).columns.size();
  const std::size_t wide = larger<std::size_t>(size_of(args.x.dtype), 4);
  constexpr std::size_t fixed = sizeof(AdjacentShared<double>);
  const bool fits =
      !wants_sums(args) ||
      n <= static_cast<std::int64_t>((context.info().shared_per_block - fixed) / (2 * wide));
  return fits ? supported : unsupported("shared memory does not hold the sums of so many columns");
}

/// Returns the number of blocks. Blocks with column sums are limited, because their sums are added
/// up later: computing 32 rows takes as long as adding up 64 Ki sums.
std::int64_t blocks_of(std::int64_t rows, std::int64_t n, bool sums) {
  const std::int64_t groups = ceil_div(rows, std::int64_t{warp_size});
  if (!sums) return groups;
  const double best = std::sqrt(static_cast<double>(groups) * 65536);
  return clamped(static_cast<std::int64_t>(best), std::int64_t{1},
                 larger(smaller(groups, (std::int64_t{1} << 40) / (n + 1)), std::int64_t{1}));
}

Work work(const NormBackward::Args& args, const Context& context) {
  const NormBackward::Lines lines = NormBackward::lines_of(args);
  const std::int64_t rows = lines.rows.size(), n = lines.columns.size();
  const std::int64_t trips = (args.rstd.data == nullptr ? 4 : 2) * ceil_div(n, batch * warps);
  const bool adjacent =
      lines.rows.rank == 0 || lines.rows.strides[NormBackward::row_x][lines.rows.rank - 1] == 1;
  Work work = block_work(ceil_div(rows, warp_size), warp_size * warps, trips,
                         args.x.dtype == DType::f64 ? "f64"
                         : adjacent                 ? ""
                                                    : "strided");
  if (wants_sums(args)) work = in_turns(context, in_turns(blocks_of(rows, n, true), work));
  return with_finish(args, work);
}

void run(const NormBackward::Args& args, Context& context) {
  constexpr std::int64_t max_blocks = 0x7fffffff;
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    using W = Accumulator<T>;
    NormGradientArguments<T> call = call_of<T>(args);
    const bool sums = wants_sums(args);
    const std::size_t shared_bytes = shared_bytes_of<W>(call.n, sums);
    call.chunks = smaller(max_blocks, blocks_of(call.rows, call.n, sums));
    if (sums) {
      call.chunks = smaller(call.chunks, resident_blocks(context, norm_backward_adjacent_rows<T>,
                                                         warp_size * warps, shared_bytes));
      call.sums = static_cast<W*>(
          context.workspace(static_cast<std::size_t>(2 * call.chunks * call.n) * sizeof(W)));
    }
    launch(context,
           {.grid = call.chunks,
            .block = {warp_size, warps},
            .shared_bytes = shared_bytes,
            .dependent = can_depend(context)},
           norm_backward_adjacent_rows<T>, call);
    if (sums) launch_finish(context, call, can_depend(context));
  });
}

const Rung<NormBackward> self{{.name = "adjacent_rows",
                               .after = "block_per_row",
                               .backend = device_backend,
                               .supports = supports,
                               .passes = {.loads = 2, .stores = 1},
                               .work = work,
                               .run = run}};

}  // namespace
}  // namespace rung
