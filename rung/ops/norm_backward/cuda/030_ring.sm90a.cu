// SPDX-License-Identifier: Apache-2.0
// norm_backward / ring
//
// Idea     blocks that stay, cut into teams of as many warps as a row needs. x and dy come through
//          a ring in shared memory by bulk copies and are read from there twice, so that registers
//          hold nothing but the sums for dgamma and dbeta of a thread's 32 columns.
// Changes  against registers_fused: rows under way while others are worked on; the teams of a block
//          put their sums together, so that there are as many as multiprocessors; rows of up to
//          16384 elements.
// Cost     what must be, and the blocks' sums once.
// Limits   contiguous rows of whole, aligned packs of 16 bytes: up to 16384 elements, 8192 of f64.
// Tried    H200, copy 4240 GB/s, f32 65536x1024: this, 4 warps and 96 KiB under way, 3954 GB/s. A
//          branch on the kind of gamma for every pack, and one for rows that fill their threads:
//          3057. As trial kernels 16 warps and 128 KiB 3792, 12 and 192 KiB 3822. bf16 65536x1024,
//          8 warps and 64 KiB: 3572; elements widened one by one, 128 KiB 2556; plain stores 2525
//          (f32: streaming ones 3426). Begun while the grid in front ends, two blocks meet on a
//          multiprocessor and another has none: bf16 2748.
// Source   the structure of norm's ring.
#include "rung/core/bounds.hpp"
#include "rung/ops/norm_backward/cuda/detail/ring.hpp"

namespace rung {
namespace {

using namespace norm_backward_cuda;
constexpr std::int64_t rows_a_chunk = 8;

template <class T, bool whole>
__global__ void __launch_bounds__(ring_threads, 1) norm_backward_ring(Call<T> call, int stages) {
  using W = Accumulator<T>;
  constexpr int width = pack_width<T>;
  constexpr int packs = kept_packs<T>;
  auto& scratch = shared<RingShared<W>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int team = static_cast<int>(threadIdx.y);
  const int teams = static_cast<int>(blockDim.y);
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int row_packs = static_cast<int>(call.n / width);

  auto* const gamma = reinterpret_cast<unsigned char*>(&scratch + 1);  // in front of the ring
  const int n = static_cast<int>(call.n);
  copy_gamma(call, gamma);
  auto* const ring =
      reinterpret_cast<Pack<T, width>*>(gamma + (call.wide_gamma ? sizeof(W) : sizeof(T)) * n);
  const TeamRows<T, whole> mine{call, row_packs, ring + team * stages * 2 * row_packs,
                                scratch.full[team], gamma};
  const std::int64_t step = std::int64_t{gridDim.x} * teams;
  const std::int64_t first = std::int64_t{blockIdx.x} * teams + team;
  if (thread == 0) {
    for (int stage = 0; stage < stages; ++stage) ptx::mbarrier_init(mine.full[stage], 1);
    ptx::mbarrier_fence_init();
    for (int stage = 0; stage < stages; ++stage) mine.fetch(first + stage * step, stage);
  }

  Pack<W, width> dgamma[packs];
  Pack<W, width> dbeta[packs];
#pragma unroll
  for (int p = 0; p < packs; ++p) {
#pragma unroll
    for (int i = 0; i < width; ++i) dgamma[p][i] = dbeta[p][i] = 0;
  }
  const auto scale_at = [&](std::int64_t row) {
    std::int64_t at[5] = {};
    if (row >= call.rows || call.rstd == nullptr) return Scale<W>{};
    call.lines.rows.offsets(row, at);
    return given_scale(call, at);
  };
  Scale<W> next = scale_at(first);
  __syncthreads();  // gamma and the barriers are there

  int stage = 0;
  unsigned parity = 0;
  int turn = 0;
  for (std::int64_t row = first; row < call.rows; row += step) {
    Scale<W> scale = next;
    next = scale_at(row + step);
    ptx::mbarrier_wait(mine.full[stage], parity);
    if (call.rstd == nullptr) {
      scale = scale_again(mine, stage, scratch.parts + team * warps);
    }
    Means<W> means{};
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (!mine.has(p)) continue;
      const Pack<W, width> x = mine.x(stage, p);
      const Pack<W, width> dy = mine.dy(stage, p);
      const Pack<W, width> weights = mine.weights(p);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const W z = (x[i] - scale.center) * scale.rstd + scale.shift;
        const W g = dy[i] * weights[i];
        means.g += g;
        means.gz += g * z;
        dgamma[p][i] += dy[i] * z;
        dbeta[p][i] += dy[i];
      }
    }
    means = warp_reduce(means, AddMeans{});
    Means<W>* const of_warp = scratch.means[turn] + team * warps;
    turn ^= 1;
    if (warps > 1 && lane_of_thread() == 0) of_warp[thread / 32] = means;
    team_sync();  // and x and dy are read again below, not kept
    if (warps > 1) {
      // The row before has been read twice by all: another takes its place.
      if (thread == 0 && row != first && stages > 1) {
        mine.fetch(row + (stages - 1) * step, stage == 0 ? stages - 1 : stage - 1);
      }
      const int lane = lane_of_thread();
      means = warp_reduce(lane < warps ? of_warp[lane] : Means<W>{}, AddMeans{});
    }
    const W all_g = call.layer ? means.g * call.part * scale.rstd : W{0};
    const W all_gz = means.gz * call.part * scale.rstd;
    T* const dx_row = call.dx + call.lines.rows.template offset<NormBackward::row_dx>(row);
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (!mine.has(p)) continue;
      const Pack<W, width> x = mine.x(stage, p);
      const Pack<W, width> dy = mine.dy(stage, p);
      const Pack<W, width> weights = mine.weights(p);
      Pack<W, width> dx;
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const W z = (x[i] - scale.center) * scale.rstd + scale.shift;
        dx[i] = dy[i] * scale.rstd * weights[i] - all_g - z * all_gz;
      }
      if constexpr (sizeof(T) == 2) {
        store_raw_streaming(dx_row + mine.index(p) * width, narrow<T>(dx));
      } else {
        store_raw(dx_row + mine.index(p) * width, narrow<T>(dx));
      }
    }
    if (warps == 1 || stages == 1) {
      team_sync();
      if (thread == 0) mine.fetch(row + stages * step, stage);
    }
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
  if (call.sums != nullptr) add_up(mine, ring, dgamma, dbeta);
}

Support supports(const NormBackward::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) {
    return unsupported("bulk copies need compute capability 9.0");
  }
  if (const Support packs = require_whole_packs(args); !packs) return packs;
  const std::int64_t n = NormBackward::lines_of(args).columns.size();
  const std::int64_t most = visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    return std::int64_t{kept_packs<T> * pack_width<T> * ring_threads};
  });
  if (n > most) return unsupported("the row is longer than registers hold sums for");
  return supported;
}

double estimate(const NormBackward::Args& args, const Context& context) {
  // Rows of less than a warp's share of packs leave lanes idle.
  const auto row_bytes = NormBackward::lines_of(args).columns.size() *
                         static_cast<std::int64_t>(size_of(args.x.dtype));
  constexpr std::int64_t warp_bytes = 4096;  // which a warp's registers hold sums for, of f32
  if (row_bytes < 512) return seconds(args, context, 1, 0.3);
  const bool small = size_of(args.x.dtype) == 2;
  return seconds(args, context, 1, small ? 0.8 : row_bytes == warp_bytes ? 0.66 : 0.6);
}

void run(const NormBackward::Args& args, Context& context) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    Call<T> call = call_of<T>(args);
    const RingPlan plan = plan_of(call, context);
    const std::int64_t blocks = context.info().multiprocessors;  // one each
    call.chunks = clamped(ceil_div(call.rows, rows_a_chunk * plan.teams), std::int64_t{1}, blocks);
    if (wants_sums(args)) {
      call.sums = static_cast<Accumulator<T>*>(context.workspace(
          static_cast<std::size_t>(2 * call.chunks * call.n) * sizeof(Accumulator<T>)));
    }
    launch(context,
           {.grid = call.chunks,
            .block = {plan.threads, plan.teams},
            .shared_bytes = plan.shared_bytes},
           plan.whole ? norm_backward_ring<T, true> : norm_backward_ring<T, false>, call,
           plan.stages);
    if (call.sums != nullptr) launch_finish(context, call);
  });
}

const Rung<NormBackward> self{{.name = "ring",
                               .step = 30,
                               .after = "registers_fused",
                               .backend = device_backend,
                               .supports = supports,
                               .estimate = estimate,
                               .run = run}};

}  // namespace
}  // namespace rung
