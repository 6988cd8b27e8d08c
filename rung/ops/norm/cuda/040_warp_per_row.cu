// SPDX-License-Identifier: Apache-2.0
// norm / warp per row
//
// Idea     One warp owns a row and reduces sums by shuffles. Loads and stores are 16 bytes wide at
//          aligned addresses, so rows of odd length or alignment have a partial pack at either end
//          only.
// Changes  against block_two_pass: no barrier and no shared memory, a quarter to an eighth of the
//          load instructions, and short rows do not leave most of a block idle.
// Cost     A row is read three times, the second and third time from L1 if it fits.
// Limits   Contiguous rows. For long rows, 32 threads have too few loads in flight, and L1 no
//          longer holds the row.
// Source   CUDA C++ Programming Guide, "Warp shuffle functions".
#include "rung/ops/norm/shared/cuda/packs.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

constexpr RowBlock block{.threads = 32, .rows = 4};

template <class T>
__global__ void __launch_bounds__(block.threads* block.rows)
    norm_warp_per_row(NormArguments<T> call) {
  using W = Accumulator<T>;
  constexpr int width = vector_width<T>;
  const int lane = static_cast<int>(threadIdx.x);
  const std::int64_t first = std::int64_t{blockIdx.x} * block.rows + threadIdx.y;
  for (std::int64_t row = first; row < call.rows; row += std::int64_t{gridDim.x} * block.rows) {
    const PackedRow<T> packed(call, row);
    const std::int64_t packs = packed.packs();
    W center = 0;
    if (call.layer || call.residual != nullptr) {
      W sum = 0;
      for (std::int64_t pack = lane; pack < packs; pack += 32) {
        const Pack<T, width> s = packed.first(pack, true);
#pragma unroll
        for (int i = 0; i < width; ++i) {
          sum += convert<W>(s[i]) * call.factors.shrink;  // zero past the row
        }
      }
      if (call.layer) {
        center = center_near(warp_reduce(sum, Plus{}) * call.factors.shrunk_part);
      }
    }
    Moments<W> moments{};
    for (std::int64_t pack = lane; pack < packs; pack += 32) {
      const Pack<T, width> s = packed.again(pack);
      const bool whole = packed.whole(pack);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        if (whole || packed.exists(pack, i)) {
          moments.add(convert<W>(s[i]) - center, call.factors.shrink);
        }
      }
    }
    moments = warp_reduce(moments, AddMoments{});
    const Scale<W> scale = scale_of(call, packed.at, center, moments, lane == 0);
    for (std::int64_t pack = lane; pack < packs; pack += 32) {
      packed.write(pack, words_of<T>(packed.again(pack)), scale);
    }
  }
}

Work work(const Norm::Args& args, const Context&) {
  const auto width = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  return row_work(args.rows(), block, ceil_div(args.columns(), width * block.threads),
                  pack_path(args, row_path(true, args.columns(), 8192)), 64);
}

void run(const Norm::Args& args, Context& context) {
  with_call(args, [&]<class T>(const NormArguments<T>& call) {
    launch_call(context, call, block, norm_warp_per_row<T>);
  });
}

const Rung<Norm> self{{.name = "warp_per_row",
                       .step = 40,
                       .after = "block_two_pass",
                       .backend = device_backend,
                       .supports = require_contiguous_rows,
                       .passes = {.loads = 3, .stores = 1},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
