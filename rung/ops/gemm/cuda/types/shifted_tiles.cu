// SPDX-License-Identifier: Apache-2.0
// gemm / shifted tiles
//
// Idea     16-bit operands whose lines begin at any address: cp.async copies the aligned 16-byte
//          words that contain a line to shared memory, two tiles of k ahead. Once a tile has
//          arrived, each thread shifts one line into place, where it lies: the address of a line
//          modulo 16 bytes is the same in every tile.
// Changes  against ldmatrix_pipeline: words in flight occupy no registers, and a tile of unaligned
//          lines has as many in flight as one of aligned lines. Against packed: no copy of an
//          operand through memory. Slices of k are combined by the last block of a tile.
// Cost     an unaligned line of 128 bytes is written to shared memory twice and read once more: a
//          64 x 64 tile of 64 steps of k takes 672 accesses of 128 bytes instead of 384.
// Limits   shared-memory bandwidth, with few tiles of k the latency of memory. f16 and bf16, each
//          operand contiguous along one axis.
// Source   PTX ISA, ldmatrix and cp.async, whose source size fills the rest of a word with zeros.
#ifndef RUNG_SPLIT_TYPE
#define RUNG_SPLIT_TYPE rung::f16
#endif
#include "rung/cpu/split.hpp"  // types: f16 bf16
#include "rung/ops/gemm/cuda/types/shifted_tiles.cuh"

namespace rung::gemm_cuda::inline RUNG_TARGET {

void run_shifted_tiles(Context& context, const Finish<RUNG_SPLIT_TYPE>& finish,
                       const ShiftedPlan& plan, unsigned* tickets) {
  launch_shifted_tiles(context, finish, plan, tickets);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET

#if RUNG_SPLIT_ONCE
#include <cmath>

#include "rung/device/tickets.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr std::int64_t longest_shifted = std::int64_t{1} << 30;  // rows, columns, steps of k
constexpr std::int64_t shifted_tickets = 4096;
constexpr std::int64_t most_shifted_partial_bytes = std::int64_t{32} << 20;

/// Names the tickets of this rung.
struct ShiftedTiles {};

/// Calls f with the product, transposed if needed so that C has contiguous rows.
template <class F>
auto with_shifted(const Gemm::Args& args, F&& f) {
  return visit<f16, bf16>(args.a.dtype, [&]<class T>() {
    Finish<T> finish = finish_of<T>(args);
    finish.p = with_contiguous_c(finish.p);
    return f(finish);
  });
}

/// Returns the warps of a tile that multiply; the others are beyond C.
template <class T>
double shifted_warps(const Product<T, float>& p, const ShiftedShape& shape) {
  return static_cast<double>(
      tiles_of(smaller<std::int64_t>(p.m(), shape.rows), shape.warp_rows) *
      tiles_of(smaller<std::int64_t>(p.n(), shape.columns), shape.warp_columns));
}

/// Returns the shared-memory accesses, of 128 bytes, of a block per tile of k.
template <class T>
double shifted_accesses(const Product<T, float>& p, const ShiftedShape& shape) {
  // Written by cp.async; an unaligned line is then read, and written again.
  const double per_line_of_a = has_shifted_lines(p.a, 1, 2) ? 3.25 : 1;
  const double per_line_of_b = has_shifted_lines(p.b, 2, 1) ? 3.25 : 1;
  return static_cast<double>(smaller<std::int64_t>(p.m(), shape.rows)) * per_line_of_a +
         static_cast<double>(smaller<std::int64_t>(p.n(), shape.columns)) * per_line_of_b +
         shifted_warps(p, shape) * (shape.warp_rows + shape.warp_columns);
}

/// Returns the plan of least time, in clock cycles of an SM: an access of shared memory takes one.
template <class T>
ShiftedPlan plan_shifted(const Product<T, float>& p, const Context& context) {
  // Cycles until the first tile of k arrives, or a ticket and the partial sums behind it.
  constexpr double latency = 1500;
  constexpr double partials_in_flight = 16;  // packs of four sums per thread
  const double sms = context.info().sms;
  const std::int64_t steps = tiles_of(p.k(), shifted_depth);
  ShiftedPlan best{};
  double least = 0;
  for (int index = 0; index < shifted_shapes_count; ++index) {
    const ShiftedShape& shape = shifted_shapes[index];
    if (shape.shared_bytes() > context.info().shared_per_block) continue;
    const double accesses = shifted_accesses(p, shape);
    // A block alone also waits for its own instructions; it has one warp per scheduler.
    const double chain = 1.25 * (shape.rows + shape.columns) * 5.25;
    const std::int64_t tiles =
        tiles_of(p.m(), shape.rows) * tiles_of(p.n(), shape.columns) * p.c.shape[0];
    const double packs = shape.sums() / 4.0;
    for (std::int64_t wanted = 1; wanted <= steps; ++wanted) {
      const std::int64_t slice_steps = tiles_of(steps, wanted);
      const std::int64_t slices = tiles_of(steps, slice_steps);
      if (slices != wanted) continue;
      std::int64_t group = slices;
      if (slices > 16) {
        group = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(slices))));
      }
      const std::int64_t groups = tiles_of(slices, group);
      const auto blocks = static_cast<double>(tiles * slices);
      if (slices > 1 &&
          (tiles * (groups + 1) > shifted_tickets ||
           shifted_partial_bytes(shape, tiles, slices, groups) > most_shifted_partial_bytes ||
           blocks > shape.blocks * sms)) {
        break;
      }
      const double of_sm = std::ceil(blocks / sms);
      const double rounds = std::ceil(of_sm / shape.blocks);
      const auto each = static_cast<double>(slice_steps);
      double time = larger(latency + of_sm * each * accesses, rounds * (latency + each * chain)) +
                    of_sm * 2 * packs * shape.threads() / 32;
      if (slices > 1) {
        const double parts = static_cast<double>(group + (groups > 1 ? groups : 0));
        time += (groups > 1 ? 2 : 1) * latency + parts * packs / partials_in_flight * latency / 2;
      }
      if (least == 0 || time < least) {
        least = time;
        best = {.shape = index,
                .slice_steps = slice_steps,
                .slices = static_cast<int>(slices),
                .group = static_cast<int>(group),
                .groups = static_cast<int>(groups)};
      }
    }
  }
  return best;
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (args.a.dtype != DType::f16 && args.a.dtype != DType::bf16) {
    return unsupported("only f16 and bf16 operands");
  }
  if (context.info().compute_capability < 80) {
    return unsupported("mma of bf16 needs compute capability 8.0");
  }
  if (args.k() == 0 || args.alpha == 0) return unsupported("there is nothing to multiply");
  if (args.m() > longest_shifted || args.n() > longest_shifted || args.k() > longest_shifted) {
    return unsupported("more than 2^30 rows, columns or steps of k");
  }
  const double tiles = static_cast<double>(tiles_of(args.m(), shifted_shapes[0].rows)) *
                       static_cast<double>(tiles_of(args.n(), shifted_shapes[0].columns)) *
                       static_cast<double>(args.batch());
  if (tiles > 0x1p24) return unsupported("more than 2^24 tiles of C");
  return with_shifted(args, [](const auto& finish) {
    return is_shiftable(finish.p.a, 1, 2) && is_shiftable(finish.p.b, 2, 1)
               ? supported
               : unsupported("each operand must be contiguous along one axis");
  });
}

Work work(const Gemm::Args& args, const Context& context) {
  return with_shifted(args, [&](const auto& finish) -> Work {
    const auto& p = finish.p;
    const ShiftedPlan plan = plan_shifted(p, context);
    const ShiftedShape& shape = shifted_shapes[plan.shape];
    const std::int64_t tiles =
        tiles_of(p.m(), shape.rows) * tiles_of(p.n(), shape.columns) * args.batch();
    const auto blocks = static_cast<double>(tiles * plan.slices);
    const auto steps = static_cast<double>(plan.slice_steps);
    // Slices that one block combines, in one or two levels.
    const int combined = plan.slices == 1 ? 0 : plan.group + (plan.groups > 1 ? plan.groups : 0);
    const double area = static_cast<double>(shape.rows) * shape.columns;
    // Sums of the warps that multiply, written and read per slice and per group.
    const int parts = plan.slices == 1 ? 0 : plan.slices + (plan.groups > 1 ? plan.groups : 0);
    const double partial = 2.0 * sizeof(float) * parts * shape.warp_rows * shape.warp_columns *
                           static_cast<double>(tiles_of(p.m(), shape.warp_rows) *
                                               tiles_of(p.n(), shape.warp_columns) * args.batch());
    return {.bytes = Gemm::cost(args).bytes + partial,
            .operations = unevenness(blocks, context) * blocks * 2 * area * steps * shifted_depth,
            .blocks = blocks,
            .resident = shape.blocks,
            .rounds = steps + combined,
            .steps = unevenness(blocks, context) *
                     (steps * shifted_accesses(p, shape) + area / 32 * (1 + combined))};
  });
}

void run(const Gemm::Args& args, Context& context) {
  with_shifted(args, [&](const auto& finish) {
    const ShiftedPlan plan = plan_shifted(finish.p, context);
    run_shifted_tiles(
        context, finish, plan,
        plan.slices > 1 ? tickets_of<ShiftedTiles>(context, shifted_tickets) : nullptr);
  });
}

const Rung<Gemm> self{
    {.name = "shifted_tiles",
     .after = "packed",
     .backend = device_backend,
     .supports = supports,
     .tile = {.rows = shifted_shapes[1].rows, .columns = shifted_shapes[1].columns},
     .work = work,
     .run = run}};

}  // namespace
}  // namespace rung
#endif  // RUNG_SPLIT_ONCE
