// SPDX-License-Identifier: Apache-2.0
// softmax / a cluster a row
//
// Idea     a row that fills a block spreads over a cluster of 2 to 16 of them, each of which keeps
//          its part in registers; maxima and sums travel through the cluster's shared memory.
// Changes  against registers_single_read: rows up to 262144 elements are read once, and from 8192
//          up two smaller blocks share a multiprocessor, so that one loads while the other waits at
//          a barrier.
// Cost     1 read and 1 write an element; two exchanges a row, a cluster barrier each, some 1 us of
//          latency that other clusters hide.
// Limits   compute capability 9.0; contiguous rows; f32, f16 and bf16 with results of the same
//          type. Beyond 8 blocks a cluster fits fewer places on the chip.
// Tried    -
// Source   QuACK (T. Dao and others, 2025); the Hopper tuning guide on distributed shared memory.
#include "rung/ops/softmax/cuda_cluster.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

constexpr int usual_threads = 512;
constexpr int most_blocks_a_cluster = 16;

template <class T>
__global__ void __launch_bounds__(most_threads)
    softmax_cluster_rows(Rows<2> rows, Forward<T, T> p) {
  constexpr int width = pack_width<T>;
  constexpr int packs = kept_forward<T>.by_block;
  auto& memory = shared<ClusterShared<float>>();
  for_each_cluster_row(rows.count(), [&](std::int64_t row) {
    const T* x = p.x + rows.template offset<0>(row);
    const int lead = lead_of<width>(x);
    const RowPacks<const T, width, int> in(x, rows.length, lead);
    const T nothing = convert<T>(-std::numeric_limits<float>::infinity());
    float values[packs][width];
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const Pack<T, width> pack = in.load(cluster_pack_index<packs>(k), nothing);
#pragma unroll
      for (int i = 0; i < width; ++i) values[k][i] = convert<float>(pack[i]);
    }
    float maximum = no_maximum<float>;
    for_each_value(values, [&](float& value) { maximum = fmaxf(maximum, value); });
    maximum = cluster_reduce(maximum, Larger{}, memory.scratch, memory.maximum);
    float sum = 0;
    for_each_value(values, [&](float& value) {
      const float z = (value - maximum) * p.scale;
      const float e = power(z);
      sum += e;
      value = p.log ? z : e;
    });
    sum = cluster_reduce(sum, Plus{}, memory.scratch, memory.sum);
    const float factor = p.log ? 1.0F : reciprocal(sum);
    const float shift = p.log ? logarithm(sum) : 0.0F;
    const RowPacks<T, width, int> out(p.y + rows.template offset<1>(row), rows.length, lead);
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      Pack<T, width> pack;
#pragma unroll
      for (int i = 0; i < width; ++i) pack[i] = convert<T>(values[k][i] * factor - shift);
      out.store(cluster_pack_index<packs>(k), pack);
    }
  });
}

template <class T>
__global__ void __launch_bounds__(most_threads)
    softmax_backward_cluster(Rows<3> rows, Backward<T, T> p) {
  constexpr int width = pack_width<T>;
  constexpr int packs = kept_backward.by_block;
  auto& memory = shared<ClusterShared<float>>();
  int parity = 0;  // one exchange a row: two places take turns
  for_each_cluster_row(rows.count(), [&](std::int64_t row) {
    std::int64_t at[3];
    rows.offsets(row, at);
    const int lead = lead_of<width>(p.y + at[0]);
    const RowPacks<const T, width, int> y(p.y + at[0], rows.length, lead);
    const RowPacks<const T, width, int> dy(p.dy + at[1], rows.length, lead);
    Pack<T, width> values[packs];
    Pack<T, width> gradients[packs];
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      values[k] = y.load(cluster_pack_index<packs>(k), zero<T>());
      gradients[k] = dy.load(cluster_pack_index<packs>(k), zero<T>());
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < packs; ++k) {
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const float gradient = convert<float>(gradients[k][i]);
        sum += p.log ? gradient : gradient * convert<float>(values[k][i]);
      }
    }
    sum = cluster_reduce(sum, Plus{}, memory.scratch, parity == 0 ? memory.sum : memory.maximum);
    parity ^= 1;
    const RowPacks<T, width, int> dx(p.dx + at[2], rows.length, lead);
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      Pack<T, width> pack;
#pragma unroll
      for (int i = 0; i < width; ++i) {
        pack[i] = convert<T>(gradient_of(convert<float>(values[k][i]),
                                         convert<float>(gradients[k][i]), sum, p.scale, p.log));
      }
      dx.store(cluster_pack_index<packs>(k), pack);
    }
  });
}

struct Plan {
  int threads = usual_threads;
  int blocks = 2;  // a cluster
  bool fits = true;
};
template <class T>
Plan plan_of(const Softmax::Args& args) {
  const Kept kept = args.backward ? kept_backward : kept_forward<T>;
  const std::int64_t packs = packs_of_row<T>(args);
  Plan plan;
  const auto fits = [&] {
    return packs <= std::int64_t{plan.blocks} * plan.threads * kept.by_block;
  };
  while (plan.threads > 32 && packs <= std::int64_t{plan.threads} * kept.by_block) {
    plan.threads /= 2;  // a short row: two blocks have room still
  }
  while (!fits() && plan.blocks < 8) plan.blocks *= 2;
  if (!fits()) plan.threads = most_threads;
  while (!fits() && plan.blocks < most_blocks_a_cluster) plan.blocks *= 2;
  plan.fits = fits();
  return plan;
}

Support supports(const Softmax::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) return unsupported("clusters need an sm_90");
  if (args.x.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (args.x.dtype != args.y.dtype) return unsupported("the result's type must be that of x");
  if (const Support rows = require_contiguous_rows(args); !rows) return rows;
  const bool fits =
      visit<float, f16, bf16>(args.x.dtype, [&]<class T>() { return plan_of<T>(args).fits; });
  return fits ? supported : unsupported("the row exceeds a cluster's registers");
}

double estimate(const Softmax::Args& args, const Context& context) {
  return seconds(args, context, args.length() > 8192 ? 1.1 : 2.0);
}

void run(const Softmax::Args& args, Context& context) {
  visit<float, f16, bf16>(args.x.dtype, [&]<class T>() {
    const Plan plan = plan_of<T>(args);
    const std::int64_t clusters =
        std::min<std::int64_t>(args.count(), 0x7fffffff / most_blocks_a_cluster);
    const LaunchShape shape{.grid = clusters * plan.blocks,
                            .block = plan.threads,
                            .shared_bytes = sizeof(ClusterShared<float>),
                            .cluster = plan.blocks};
    if (args.backward) {
      launch(context, shape, softmax_backward_cluster<T>, args.rows, backward_of<T, T>(args));
    } else {
      launch(context, shape, softmax_cluster_rows<T>, forward_rows(args), forward_of<T, T>(args));
    }
  });
}

const Rung<Softmax> self{{.name = "cluster_rows",
                          .step = 60,
                          .after = "registers_single_read",
                          .backend = device_backend,
                          .supports = supports,
                          .estimate = estimate,
                          .run = run}};

}  // namespace
}  // namespace rung
