// SPDX-License-Identifier: Apache-2.0
// gemm / packed
//
// Idea     operands that TMA does not support are first copied to the workspace, to lines that
//          begin at multiples of 128 bytes; f32 is transposed so that k is contiguous, as wgmma
//          requires for tf32. Then `persistent` multiplies.
// Changes  against ldmatrix_pipeline, the fallback for such operands: one extra read and write of
//          an operand instead of loads through registers per tile.
// Cost     reading and writing the operand once more, and a launch per copy; then that of
//          persistent.
// Limits   up to 1 GiB of copies; operands that TMA supports are used in place. Threads write C if
//          TMA cannot.
// Source   cuBLAS, by its kernels' names in a profile.
#include "rung/ops/gemm/cuda/320_persistent.cuh"
#include "rung/ops/gemm/cuda/detail/pack.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

/// Layout in which an operand is passed to TMA.
template <class T>
struct Packed {
  MappedOperand<T> operand;
  bool packs;

  [[nodiscard]] std::int64_t bytes() const {
    if (!packs) return 0;
    const View<const T, 3>& view = operand.view;
    const std::int64_t elements = view.shape[0] * view.shape[1] * packed_pitch<T>(view.shape[2]);
    return tiles_of(elements * std::int64_t{sizeof(T)}, 1024) * 1024;
  }
};
/// Returns the layout of an operand. `given`: matrices x outer x k, in that order if the axes are 1
/// and 2.
template <class T>
Packed<T> packed_operand(const View<const T, 3>& given, int outer, int depth) {
  Packed<T> packed{mapped_operand(given, outer, depth), false};
  constexpr int box[3] = {1, 64, SwizzledTile<T, 64, true>::depth};
  const bool turns = sizeof(T) == 4 && !packed.operand.k_major;
  if (!turns && tensor_map_support(packed.operand.view, box, Swizzle::bytes_128)) return packed;
  packed.packs = true;
  MappedOperand<T>& operand = packed.operand;
  operand.k_major =
      sizeof(T) == 4 || std::abs(given.strides[depth]) <= std::abs(given.strides[outer]);
  const int line = operand.k_major ? outer : depth;
  const int along = operand.k_major ? depth : outer;
  operand.view.shape[1] = given.shape[line];
  operand.view.shape[2] = given.shape[along];
  operand.view.strides[1] = given.strides[line];
  operand.view.strides[2] = given.strides[along];
  return packed;
}
template <class T>
struct PackedOperands {
  Finish<T> finish;
  Packed<T> a, b;
  [[nodiscard]] std::int64_t bytes() const { return a.bytes() + b.bytes(); }
};
template <class T>
PackedOperands<T> packed_operands(const Gemm::Args& args) {
  Finish<T> finish = finish_of<T>(args);
  finish.p = with_contiguous_c(finish.p);
  return {finish, packed_operand(finish.p.a, 1, 2), packed_operand(finish.p.b, 2, 1)};
}

template <class T>
void pack_operand(Context& context, Packed<T>& packed, unsigned char* to) {
  View<const T, 3>& view = packed.operand.view;
  if (packed.packs) view = pack(context, view, reinterpret_cast<T*>(to));
}

/// Calls f with the packed operands of the call's type.
template <class F>
auto with_packed(const Gemm::Args& args, F&& f) {
  return visit<float, f16, bf16>(args.a.dtype,
                                 [&]<class T>() { return f(packed_operands<T>(args)); });
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (const Support extents = require_mapped_extents(args, context); !extents) return extents;
  return with_packed(args, [&](const auto& operands) {
    if (operands.bytes() == 0) return unsupported("the copy engine takes A and B as they are");
    return operands.bytes() <= most_packed_bytes ? supported
                                                 : unsupported("copies of more than 1 GiB");
  });
}

TensorPlan plan_of(const Gemm::Args& args, const Context& context) {
  return plan_tensor(args, context, persistent_tiles, true);
}

Work work(const Gemm::Args& args, const Context& context) {
  const TensorPlan plan = plan_of(args, context);
  Work work = tensor_work(args, context, persistent_tiles[plan.tile], plan.slices);
  with_packed(args, [&](const auto& operands) {
    work.launches = work.launches + (operands.a.packs ? 1.0 : 0.0) + (operands.b.packs ? 1.0 : 0.0);
    work.bytes = work.bytes + 2 * static_cast<double>(operands.bytes());
  });
  return work;
}

void run(const Gemm::Args& args, Context& context) {
  const TensorPlan plan = plan_of(args, context);
  with_packed(args, [&]<class T>(PackedOperands<T> operands) {
    const std::size_t partial = plan.slices > 1 ? partial_bytes(operands.finish, plan.slices) : 0;
    auto* const memory = static_cast<unsigned char*>(
        context.workspace(static_cast<std::size_t>(operands.bytes()) + partial));
    pack_operand(context, operands.a, memory);
    pack_operand(context, operands.b, memory + operands.a.bytes());
    run_persistent(context, {operands.finish, operands.a.operand, operands.b.operand}, plan,
                   memory + operands.bytes());
  });
}

const Rung<Gemm> self{{.name = "packed",
                       .after = "persistent",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = persistent_rows, .columns = 256},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
