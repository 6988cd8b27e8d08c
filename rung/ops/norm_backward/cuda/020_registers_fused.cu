// SPDX-License-Identifier: Apache-2.0
// norm_backward / registers, fused
//
// Idea     One fused kernel: x and dy of a row stay in the registers of its threads, as do the sums
//          of dgamma and dbeta for each thread's columns, over all rows that its block processes. A
//          second, small kernel adds up the blocks' sums.
// Changes  against block_per_row: x and dy are read once, in 16-byte loads.
// Cost     Compulsory traffic, and the blocks' sums once: 2 n elements per 8 rows or more, or per
//          row if SMs remained idle otherwise.
// Limits   Contiguous rows of full, aligned 16-byte packs: up to 8192 elements of f32, f16 and
//          bf16, 4096 of f64.
// Source   the structure of Apex's and Liger's layer norm backward.
#include "rung/core/bounds.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/norm_backward/cuda/detail/norm_backward.hpp"

namespace rung {
namespace {

using namespace norm_backward_cuda;

constexpr int max_threads = 512;
constexpr std::int64_t rows_a_chunk = 8;

/// Packs per thread: gamma and two sums take 3 registers per element, x and dy two packs of 4
/// words.
template <class T>
constexpr int packs = sizeof(T) == 2 ? 2 : 4;

template <class W>
struct Shared {
  RowScratch<W> sums;
  RowScratch<Moments<W>> moments;
  RowScratch<Means<W>> means;
};

template <class T>
__global__ void __launch_bounds__(max_threads)
    norm_backward_registers(NormGradientArguments<T> call) {
  start_dependent();
  using W = Accumulator<T>;
  constexpr int w = vector_width<T>;
  constexpr int p_count = packs<T>;
  auto& scratch = shared<Shared<W>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const std::int64_t length = call.n / w;
  Pack<W, w> gamma[p_count];
  Pack<W, w> dgamma[p_count];
  Pack<W, w> dbeta[p_count];
#pragma unroll
  for (int p = 0; p < p_count; ++p) {
    const int pack = thread + p * threads;
#pragma unroll
    for (int i = 0; i < w; ++i) {
      gamma[p][i] = pack < length ? gamma_at(call, std::int64_t{pack} * w + i) : W{0};
      dgamma[p][i] = dbeta[p][i] = 0;
    }
  }
  for_each_row(call.rows, [&](std::int64_t row, bool exists) {
    std::int64_t at[5] = {};
    if (exists) call.lines.rows.offsets(row, at);
    Pack<T, w> x[p_count];
    Pack<T, w> dy[p_count];
#pragma unroll
    for (int p = 0; p < p_count; ++p) {
      const int pack = thread + p * threads;
#pragma unroll
      for (int i = 0; i < w; ++i) x[p][i] = dy[p][i] = zero<T>();
      if (exists && pack < length) {
        x[p] = load_wide<w>(call.x + at[NormBackward::row_x] + std::int64_t{pack} * w);
        dy[p] = load_wide<w>(call.dy + at[NormBackward::row_dy] + std::int64_t{pack} * w);
      }
    }
    Scale<W> scale{};
    if (call.rstd != nullptr) {
      if (exists) scale = given_scale(call, at);
    } else {
      W sum = 0;
#pragma unroll
      for (int p = 0; p < p_count; ++p) {
#pragma unroll
        for (int i = 0; i < w; ++i) sum += convert<W>(x[p][i]) * call.factors.shrink;
      }
      W center = 0;
      if (call.layer) {
        center = center_near(row_reduce(sum, Plus{}, scratch.sums) * call.factors.shrunk_part);
      }
      Moments<W> moments{};
#pragma unroll
      for (int p = 0; p < p_count; ++p) {
        if (thread + p * threads >= length) continue;
#pragma unroll
        for (int i = 0; i < w; ++i) {
          moments.add(convert<W>(x[p][i]) - center, call.factors.shrink);
        }
      }
      scale = scale_about(call, center, row_reduce(moments, AddMoments{}, scratch.moments));
    }
    const auto z = [&](int p, int i) {
      return (convert<W>(x[p][i]) - scale.center) * scale.rstd + scale.shift;
    };
    Means<W> means{};
#pragma unroll
    for (int p = 0; p < p_count; ++p) {
      if (!exists || thread + p * threads >= length) continue;
#pragma unroll
      for (int i = 0; i < w; ++i) {
        const W dy_i = convert<W>(dy[p][i]);
        const W g = dy_i * gamma[p][i];
        means.g += g;
        means.gz += g * z(p, i);
        dgamma[p][i] += dy_i * z(p, i);
        dbeta[p][i] += dy_i;
      }
    }
    means = row_reduce(means, AddMeans{}, scratch.means);
    const W mean_g = call.layer ? means.g * call.factors.part : W{0};
    const W mean_gz = means.gz * call.factors.part;
#pragma unroll
    for (int p = 0; p < p_count; ++p) {
      const int pack = thread + p * threads;
      if (!exists || pack >= length) continue;
      Pack<T, w> dx;
#pragma unroll
      for (int i = 0; i < w; ++i) {
        const W g = convert<W>(dy[p][i]) * gamma[p][i];
        dx[i] = convert<T>(scale.rstd * (g - mean_g - z(p, i) * mean_gz));
      }
      store_wide(call.dx + at[NormBackward::row_dx] + std::int64_t{pack} * w, dx);
    }
  });
  if (call.sums == nullptr) return;
  const std::int64_t chunk = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  W* const sums = call.sums + chunk * 2 * call.n;
#pragma unroll
  for (int p = 0; p < p_count; ++p) {
    const int pack = thread + p * threads;
    if (pack >= length) continue;
    store(sums + std::int64_t{pack} * w, dgamma[p]);
    store(sums + call.n + std::int64_t{pack} * w, dbeta[p]);
  }
}

Support supports(const NormBackward::Args& args, const Context&) {
  if (const Support whole = require_whole_packs(args); !whole) return whole;
  const auto w = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  const std::int64_t most = std::int64_t{max_threads} * w * (w == 8 ? packs<f16> : packs<float>);
  return NormBackward::lines_of(args).columns.size() <= most
             ? supported
             : unsupported("the row is longer than registers hold");
}

RowBlock block_of(const NormBackward::Args& args) {
  const std::size_t size = size_of(args.x.dtype);
  return row_block(
      NormBackward::lines_of(args).columns.size() * static_cast<std::int64_t>(size) / 16,
      size == 2 ? packs<f16> : packs<float>, 1, max_threads);
}
/// Returns the grid size: at most the resident blocks, and few enough that each of a block's rows
/// of threads processes eight rows or more, which bounds the partial sums that are added up, unless
/// SMs remained idle.
std::int64_t blocks_of(std::int64_t rows, const RowBlock& block, std::int64_t resident,
                       const Context& context) {
  const std::int64_t most = larger(ceil_div(rows, std::int64_t{block.rows}), std::int64_t{1});
  const std::int64_t few = larger(ceil_div(rows, rows_a_chunk * block.rows),
                                  smaller(most, std::int64_t{context.info().sms}));
  return clamped(few, std::int64_t{1}, resident);
}

Work work(const NormBackward::Args& args, const Context& context) {
  const std::int64_t rows = NormBackward::lines_of(args).rows.size();
  const RowBlock block = block_of(args);
  const Work all = row_work(rows, block, 1, type_path(args.x.dtype), 128);
  const Work work = in_turns(context, in_turns(blocks_of(rows, block, all.blocks, context), all));
  return with_finish(args, work, work.blocks * block.rows);
}

void run(const NormBackward::Args& args, Context& context) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    using W = Accumulator<T>;
    NormGradientArguments<T> call = call_of<T>(args);
    const RowBlock block = block_of(args);
    const std::size_t shared_bytes = sizeof(Shared<W>);
    const std::int64_t resident = resident_blocks(context, norm_backward_registers<T>,
                                                  block.threads * block.rows, shared_bytes);
    const std::int64_t blocks = blocks_of(call.rows, block, resident, context);
    call.chunks = blocks * block.rows;
    if (wants_sums(args)) {
      call.sums = static_cast<W*>(
          context.workspace(static_cast<std::size_t>(2 * call.chunks * call.n) * sizeof(W)));
    }
    launch(context,
           {.grid = blocks,
            .block = {block.threads, block.rows},
            .shared_bytes = shared_bytes,
            .dependent = can_depend(context)},
           norm_backward_registers<T>, call);
    if (call.sums != nullptr) launch_finish(context, call, can_depend(context));
  });
}

const Rung<NormBackward> self{{.name = "registers_fused",
                               .step = 20,
                               .after = "block_per_row",
                               .backend = device_backend,
                               .supports = supports,
                               .passes = {.loads = 1, .stores = 1},
                               .work = work,
                               .run = run}};

}  // namespace
}  // namespace rung
