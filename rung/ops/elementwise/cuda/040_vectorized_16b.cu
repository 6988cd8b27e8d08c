// SPDX-License-Identifier: Apache-2.0
// elementwise / vectorized, 16 bytes
//
// Idea     each load and store moves 16 bytes: 4 f32, 8 f16, 16 u8. A thread processes one pack of
//          each operand and exits; for compute-heavy functions it processes two or four, all loaded
//          before the first is used.
// Changes  against coarsened_grid_stride: a quarter of the instructions, and short-lived blocks.
//          Against strided: rows of several axes and broadcast operands are loaded in packs. Index
//          divisions become multiplications; problems of two axes with long rows have a
//          two-dimensional grid and need neither. The first block computes the elements outside
//          packs. Programmatic dependent launch overlaps the next launch.
// Cost     loads every operand once, stores the result once.
// Limits   rows that are contiguous in every operand (or repeat one element) and equally aligned in
//          all tensors; several axes only with rows of whole packs.
// Source   J. Luitjens, CUDA Pro Tip: Increase Performance with Vectorized Memory Access, 2013.
#include "rung/ops/elementwise/cuda/040_vectorized_16b.cuh"

#include "rung/cpu/split.hpp"  // types: float double f16 bf16 int32_t,int64_t,uint8_t

namespace rung::elementwise_cuda::inline RUNG_TARGET {

/// Launches the kernel for types Ts. Instantiated in the part of this file for Ts.
template <class... Ts>
void run_vectorized(const Elementwise::Args& args, Context& context);
template <>
void run_vectorized<RUNG_SPLIT_TYPE>(const Elementwise::Args& args, Context& context) {
  launch_vectorized_16b<RUNG_SPLIT_TYPE>(args, context);
}

}  // namespace rung::elementwise_cuda::inline RUNG_TARGET

#if RUNG_SPLIT_ONCE
namespace rung {
namespace {

using namespace elementwise_cuda;

bool packs(const Elementwise::Args& args) {
  bool fits = false;
  with_tensors<float, double, f16, bf16, std::int32_t, std::int64_t, std::uint8_t>(
      args, [&](const auto& tensors) { fits = pack(tensors).has_value(); });
  return fits;
}

Support supports(const Elementwise::Args& args, const Context&) {
  return packs(args) ? supported
                     : unsupported("needs 16-byte packs that are aligned in every tensor");
}

void run(const Elementwise::Args& args, Context& context) {
  switch (args.z.dtype) {
    case DType::f32:
      return run_vectorized<float>(args, context);
    case DType::f64:
      return run_vectorized<double>(args, context);
    case DType::f16:
      return run_vectorized<f16>(args, context);
    case DType::bf16:
      return run_vectorized<bf16>(args, context);
    default:
      return run_vectorized<std::int32_t, std::int64_t, std::uint8_t>(args, context);
  }
}

const Rung<Elementwise> self{{.name = "vectorized_16b",
                              .step = 40,
                              .after = "strided",
                              .backend = device_backend,
                              .supports = supports,
                              .passes = {.loads = 1, .stores = 1},
                              .work = memory_work,
                              .run = run}};

}  // namespace
}  // namespace rung
#endif  // RUNG_SPLIT_ONCE
