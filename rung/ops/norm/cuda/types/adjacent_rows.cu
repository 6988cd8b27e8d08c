// SPDX-License-Identifier: Apache-2.0
// norm / adjacent rows
//
// Idea     If the normalized axis is not the innermost one, consecutive rows are adjacent in
//          memory: threads along x of a block own adjacent rows, so loads of one column are
//          coalesced. Threads along y split the elements of a row, a few per thread.
// Changes  against block_two_pass: coalesced access, and one barrier for many rows instead of two
//          per row; rows of a few elements use one thread each and no barrier.
// Cost     A row is read twice, three times for layer norm, all but the first from L2 or L1 if the
//          rows of a block fit.
// Limits   Any strides; fast if rows are adjacent in all tensors.
// Source   softmax's online_columns.
#include "rung/ops/norm/shared/cuda/norm.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

constexpr int threads = 256;
constexpr int batch = 4;  // loads in flight per thread

template <class W>
struct Shared {
  Moments<W> of_thread[threads];
};

/// Returns the moments of each row, summed over the row's threads; all threads of a row get them.
template <class W>
__device__ __forceinline__ Moments<W> reduce_rows(Moments<W> value, Shared<W>& scratch) {
  if (blockDim.y == 1) return value;
  const unsigned lane = threadIdx.x;
  scratch.of_thread[threadIdx.y * blockDim.x + lane] = value;
  __syncthreads();
  Moments<W> sum = scratch.of_thread[lane];
  for (unsigned y = 1; y < blockDim.y; ++y) {
    sum = AddMoments{}(sum, scratch.of_thread[y * blockDim.x + lane]);
  }
  __syncthreads();
  return sum;
}

template <class T>
__global__ void __launch_bounds__(threads)
    norm_adjacent_rows(const __grid_constant__ NormArguments<T> call) {
  using W = Accumulator<T>;
  auto& scratch = shared<Shared<W>>();
  const std::int64_t step = blockDim.y;
  for (std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x; first < call.rows;
       first += std::int64_t{gridDim.x} * blockDim.x) {
    const bool exists = first + threadIdx.x < call.rows;
    const Elements<T> elements(call, exists ? first + threadIdx.x : 0);
    const std::int64_t n = exists ? call.n : 0;
    W center = 0;
    if (call.layer || call.residual != nullptr) {
      Moments<W> sum{};
#pragma unroll 4
      for (std::int64_t i = threadIdx.y; i < n; i += step) {
        sum.rest += elements.template s<true>(i) * call.factors.shrink;
      }
      if (call.layer) {
        center = center_near(reduce_rows(sum, scratch).rest * call.factors.shrunk_part);
      }
    }
    Moments<W> moments{};
#pragma unroll 4
    for (std::int64_t i = threadIdx.y; i < n; i += step) {
      moments.add(elements.s(i) - center, call.factors.shrink);
    }
    moments = reduce_rows(moments, scratch);
    const Scale<W> scale = scale_of(call, elements.at, center, moments, exists && threadIdx.y == 0);
#pragma unroll 4
    for (std::int64_t i = threadIdx.y; i < n; i += step) elements.write(i, scale);
  }
}

/// Returns a block shape with a few elements per thread; long rows use few rows per block.
RowBlock block_of(const Norm::Args& args, const Context& context) {
  int across = 32;
  while (across < threads && args.columns() * across < std::int64_t{batch} * threads) across *= 2;
  // If rows are few, use fewer adjacent rows per block; 8 f32 rows still load full sectors.
  while (across > 8 && ceil_div(args.rows(), std::int64_t{across}) < context.info().sms &&
         args.columns() * across > std::int64_t{batch} * threads) {
    across /= 2;
  }
  return {.threads = across, .rows = threads / across};
}

/// Returns whether consecutive rows are adjacent in all tensors.
bool adjacent(const Norm::Args& args) {
  const auto& rows = norm_lines::lines_of(args).rows;
  if (rows.rank == 0) return true;
  for (const int tensor :
       {norm_lines::row_x, norm_lines::row_residual, norm_lines::row_y, norm_lines::row_sum}) {
    if (rows.strides[tensor][rows.rank - 1] != 1) return false;
  }
  return true;
}

Support supports(const Norm::Args& args, const Context&) {
  return adjacent(args) ? supported : unsupported("neighboring rows must be adjacent");
}

/// Returns the fraction of the bytes moved, in whole 32-byte sectors, that belong to a run of
/// adjacent rows.
double share_of_sectors(const Norm::Args& args) {
  const auto& rows = norm_lines::lines_of(args).rows;
  const std::int64_t run = rows.rank == 0 ? 1 : rows.shape[rows.rank - 1];
  return smaller(static_cast<double>(run) * static_cast<double>(size_of(args.x.dtype)) / 32, 1.0);
}

Work work(const Norm::Args& args, const Context& context) {
  const RowBlock block = block_of(args, context);
  const int passes = args.kind == NormKind::layer ? 4 : 3;
  Work work = block_work(ceil_div(args.rows(), block.threads), threads,
                         passes * ceil_div(args.columns(), block.rows * batch),
                         type_path(args.x.dtype), 40);
  work.bytes = Norm::cost(args).bytes / share_of_sectors(args);
  return work;
}

void run(const Norm::Args& args, Context& context) {
  RowBlock block = block_of(args, context);
  with_call(args, [&]<class T>(const NormArguments<T>& call) {
    constexpr std::int64_t max_blocks = 0x7fffffff;
    launch(context,
           {.grid = smaller(max_blocks, ceil_div(call.rows, std::int64_t{block.threads})),
            .block = {block.threads, block.rows},
            .shared_bytes = sizeof(Shared<Accumulator<T>>)},
           norm_adjacent_rows<T>, call);
  });
}

const Rung<Norm> self{{.name = "adjacent_rows",
                       .after = "block_two_pass",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 3, .stores = 1},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
