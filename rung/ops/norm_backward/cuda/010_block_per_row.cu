// SPDX-License-Identifier: Apache-2.0
// norm_backward / block per row
//
// Idea     Four simple kernels: mean and rstd with one block per row; sums over a chunk of rows
//          with one thread per column; dgamma and dbeta with one thread per column; dx with one
//          block per row. dx comes last, because it may overwrite dy or x.
// Changes  baseline.
// Cost     x is read five times, dy three times.
// Limits   Scalar loads; any strides, so all valid arguments.
// Source   the chain rule.
#include "rung/core/bounds.hpp"
#include "rung/ops/norm_backward/cuda/detail/norm_backward.hpp"

namespace rung {
namespace {

using namespace norm_backward_cuda;

constexpr int threads = 256;
constexpr std::int64_t max_chunks = 64;
constexpr std::int64_t rows_a_chunk = 32;

template <class W>
struct Shared {
  WarpValues<W, threads> sums;
  WarpValues<Moments<W>, threads> moments;
  WarpValues<Means<W>, threads> means;
};

/// Element access for a row with any strides: x and dy of (row, i).
template <class T>
struct Elements {
  using W = Accumulator<T>;
  const NormGradientArguments<T>& call;
  std::int64_t at[5] = {};

  __device__ __forceinline__ Elements(const NormGradientArguments<T>& call, std::int64_t row)
      : call(call) {
    call.lines.rows.offsets(row, at);
  }
  __device__ __forceinline__ W x(std::int64_t i) const {
    return convert<W>(call.x[at[NormBackward::row_x] +
                             call.lines.columns.template offset<NormBackward::column_x>(i)]);
  }
  __device__ __forceinline__ W dy(std::int64_t i) const {
    return convert<W>(call.dy[at[NormBackward::row_dy] +
                              call.lines.columns.template offset<NormBackward::column_dy>(i)]);
  }
  __device__ __forceinline__ W g(std::int64_t i) const {
    return dy(i) *
           gamma_at(call, call.lines.columns.template offset<NormBackward::column_gamma>(i));
  }
  __device__ __forceinline__ W z(std::int64_t i, const Scale<W>& scale) const {
    return (x(i) - scale.center) * scale.rstd + scale.shift;
  }
};

template <class T>
__global__ void __launch_bounds__(threads) norm_backward_statistics(NormGradientArguments<T> call) {
  using W = Accumulator<T>;
  auto& scratch = shared<Shared<W>>();
  for (std::int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
    const Elements<T> elements(call, row);
    if (call.rstd != nullptr) {
      if (threadIdx.x == 0) call.scales[row] = given_scale(call, elements.at);
      continue;
    }
    W sum = 0;
    for (std::int64_t i = threadIdx.x; call.layer && i < call.n; i += threads) {
      sum += elements.x(i) * call.factors.shrink;
    }
    sum = block_reduce(sum, Plus{}, W{0}, scratch.sums);
    const W center = call.layer ? center_near(sum * call.factors.shrunk_part) : W{0};
    Moments<W> moments{};
    for (std::int64_t i = threadIdx.x; i < call.n; i += threads) {
      moments.add(elements.x(i) - center, call.factors.shrink);
    }
    moments = block_reduce(moments, AddMoments{}, Moments<W>{}, scratch.moments);
    if (threadIdx.x == 0) call.scales[row] = scale_about(call, center, moments);
  }
}

/// Computes sums over rows: columns along the grid's x, chunks of rows along its y.
template <class T>
__global__ void __launch_bounds__(threads) norm_backward_columns(NormGradientArguments<T> call) {
  using W = Accumulator<T>;
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= call.n) return;
  const std::int64_t chunk = blockIdx.y;
  const std::int64_t each = ceil_div(call.rows, call.chunks);
  const std::int64_t end = smaller(call.rows, (chunk + 1) * each);
  W dgamma = 0;
  W dbeta = 0;
  for (std::int64_t row = chunk * each; row < end; ++row) {
    const Elements<T> elements(call, row);
    const W dy = elements.dy(i);
    dgamma += dy * elements.z(i, call.scales[row]);
    dbeta += dy;
  }
  call.sums[chunk * 2 * call.n + i] = dgamma;
  call.sums[(chunk * 2 + 1) * call.n + i] = dbeta;
}

template <class T>
__global__ void __launch_bounds__(threads)
    norm_backward_block_per_row(NormGradientArguments<T> call) {
  using W = Accumulator<T>;
  auto& scratch = shared<Shared<W>>();
  for (std::int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
    const Elements<T> elements(call, row);
    const Scale<W> scale = call.scales[row];
    Means<W> means{};
    for (std::int64_t i = threadIdx.x; i < call.n; i += threads) {
      const W g = elements.g(i);
      means.g += g;
      means.gz += g * elements.z(i, scale);
    }
    means = block_reduce(means, AddMeans{}, Means<W>{}, scratch.means);
    const W mean_g = call.layer ? means.g * call.factors.part : W{0};
    const W mean_gz = means.gz * call.factors.part;
    for (std::int64_t i = threadIdx.x; i < call.n; i += threads) {
      const W dx = scale.rstd * (elements.g(i) - mean_g - elements.z(i, scale) * mean_gz);
      const std::int64_t column = call.lines.columns.template offset<NormBackward::column_dx>(i);
      call.dx[elements.at[NormBackward::row_dx] + column] = convert<T>(dx);
    }
  }
}

std::int64_t chunks_of(std::int64_t rows) {
  return clamped(ceil_div(rows, rows_a_chunk), std::int64_t{1}, max_chunks);
}

Work work(const NormBackward::Args& args, const Context&) {
  // Two kernels with one block per row, and one with one thread per column.
  const NormBackward::Lines lines = NormBackward::lines_of(args);
  const Work rows =
      row_work(lines.rows.size(), {.threads = threads}, ceil_div(lines.columns.size(), threads));
  return with_finish(args, in_launches(wants_sums(args) ? 3 : 2, rows),
                     chunks_of(lines.rows.size()));
}

void run(const NormBackward::Args& args, Context& context) {
  constexpr std::int64_t max_blocks = 0x7fffffff;
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    using W = Accumulator<T>;
    NormGradientArguments<T> call = call_of<T>(args);
    call.chunks = chunks_of(call.rows);
    const std::int64_t sums = wants_sums(args) ? 2 * call.chunks * call.n : 0;
    const auto bytes = static_cast<std::size_t>(sums) * sizeof(W) +
                       static_cast<std::size_t>(call.rows) * sizeof(Scale<W>);
    call.sums = static_cast<W*>(context.workspace(bytes));
    call.scales = reinterpret_cast<Scale<W>*>(call.sums + sums);
    const LaunchShape by_row{.grid = smaller(max_blocks, call.rows),
                             .block = threads,
                             .shared_bytes = sizeof(Shared<W>)};
    launch(context, by_row, norm_backward_statistics<T>, call);
    if (sums > 0) {
      launch(context,
             {.grid = {ceil_div(call.n, std::int64_t{threads}), call.chunks}, .block = threads},
             norm_backward_columns<T>, call);
      launch_finish(context, call);
    }
    launch(context, by_row, norm_backward_block_per_row<T>, call);
  });
}

const Rung<NormBackward> self{{.name = "block_per_row",
                               .step = 10,
                               .backend = device_backend,
                               .passes = {.loads = 4, .stores = 1},
                               .work = work,
                               .run = run}};

}  // namespace
}  // namespace rung
