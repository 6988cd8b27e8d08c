// SPDX-License-Identifier: Apache-2.0
// gemm / ldmatrix pipeline
//
// Idea     a ring of tiles that cp.async fills two or three ahead of the products, in a layout that
//          ldmatrix reads without bank conflicts: lines of 128 bytes whose 16-byte chunks are
//          permuted (swizzled).
// Changes  against async_ring: swizzled lines instead of padded ones; warps of 64 x 64, which load
//          8 fragments per 32 mma instructions; tiles of 128 x 128 or 64 x 64, in an order that
//          shares operands in L2; split-K where tiles are few.
// Cost     the traffic of its tiles. Per 16 steps of k, a warp's 64 x 64 tile takes 8 ldmatrix and
//          32 mma instructions.
// Limits   every layout, stride and alignment is supported. Unaligned lines are loaded as the
//          aligned chunks that contain them and shifted in registers; operands without a contiguous
//          axis are copied element by element. mma.sync reaches two thirds of Hopper's tensor-core
//          peak.
// Source   PTX ISA, ldmatrix; CUTLASS, "Implicit GEMM"'s permuted shared-memory layout.
#include "rung/cpu/split.hpp"  // types: float f16 bf16
#include "rung/ops/gemm/cuda/220_ldmatrix_pipeline.cuh"
#include "rung/ops/gemm/cuda/detail/rung.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

void run_ldmatrix_pipeline(Context& context, const Finish<RUNG_SPLIT_TYPE>& finish,
                           const TensorPlan& plan) {
  launch_ldmatrix_pipeline(context, finish, plan);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET

#if RUNG_SPLIT_ONCE
namespace rung {
namespace {

using namespace gemm_cuda;

/// Returns the plan of the fastest tile, from the measured throughputs with 16-bit operands and
/// with tf32. Unaligned lines pass through registers, one chunk per thread at a time.
TensorPlan plan_of(const Gemm::Args& args, const Context& context) {
  const int unaligned =
      (has_aligned_lines(args.a, 16) ? 0 : 1) + (has_aligned_lines(args.b, 16) ? 0 : 1);
  const double share = args.a.dtype == DType::f32 ? 0.65 : 1.0;
  constexpr double aligned_step = 0.42e-6;
  constexpr double chunk_seconds = 0.8e-6;  // a thread has 8 or 4 chunks per operand and tile
  constexpr double epilogue_rate = 5.5e9;   // bytes of C per SM, aligned ...
  constexpr double strip_rate = 3.5e9;      // ... and unaligned
  const TensorTile tiles[] = {{.rows = ldmatrix_shapes[0].rows,
                               .columns = ldmatrix_shapes[0].columns,
                               .reach = 0.39 * share,
                               .memory = 1,
                               .start_seconds = 0.5e-6,
                               .step_seconds = aligned_step + unaligned * 8 * chunk_seconds,
                               .resident = ldmatrix_shapes[0].blocks,
                               .epilogue_rate = epilogue_rate,
                               .strip_rate = strip_rate},
                              {.rows = ldmatrix_shapes[1].rows,
                               .columns = ldmatrix_shapes[1].columns,
                               .reach = 0.34 * share,
                               .memory = 1,
                               .start_seconds = 0.5e-6,
                               .step_seconds = aligned_step + unaligned * 4 * chunk_seconds,
                               .resident = ldmatrix_shapes[1].blocks,
                               .epilogue_rate = epilogue_rate,
                               .strip_rate = strip_rate}};
  return plan_tensor(args, context, tiles);
}

Support supports(const Gemm::Args& args, const Context&) {
  if (const Support types = require_tensor_cores(args); !types) return types;
  // Tiles of one matrix are limited to the blocks of a grid.
  const double tiles = static_cast<double>(tiles_of(args.m(), ldmatrix_shapes[1].rows)) *
                       static_cast<double>(tiles_of(args.n(), ldmatrix_shapes[1].columns));
  return tiles < 0x1p31 / 128 ? supported : unsupported("more than 2^24 tiles of C");
}

Work work(const Gemm::Args& args, const Context& context) {
  const TensorPlan plan = plan_of(args, context);
  const LdmatrixShape& shape = ldmatrix_shapes[plan.tile];
  Work work = tile_work(args, context,
                        {.rows = shape.rows,
                         .columns = shape.columns,
                         .depth = tile_depth(args),
                         .resident = shape.blocks,
                         .slices = plan.slices},
                        true);
  const bool a_copied = has_aligned_lines(args.a, 16), b_copied = has_aligned_lines(args.b, 16);
  work.path = a_copied && b_copied   ? ""
              : a_copied || b_copied ? "one by registers"
                                     : "by registers";
  return work;
}

void run(const Gemm::Args& args, Context& context) {
  const TensorPlan plan = plan_of(args, context);
  visit<float, f16, bf16>(
      args.a.dtype, [&]<class T>() { run_ldmatrix_pipeline(context, finish_of<T>(args), plan); });
}

const Rung<Gemm> self{
    {.name = "ldmatrix_pipeline",
     .step = 220,
     .after = "async_ring",
     .backend = device_backend,
     .supports = supports,
     .tile = {.rows = ldmatrix_shapes[0].rows, .columns = ldmatrix_shapes[0].columns},
     .work = work,
     .run = run}};

}  // namespace
}  // namespace rung
#endif  // RUNG_SPLIT_ONCE
