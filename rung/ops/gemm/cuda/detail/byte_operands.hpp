// SPDX-License-Identifier: Apache-2.0
// 8-bit operands for wgmma, which requires k contiguous: in place where TMA can load them with k
// contiguous, else as a copy in the workspace.
#pragma once

#include <cstdint>

#include "rung/device/swizzled_tile.hpp"
#include "rung/ops/gemm/cuda/detail/pack.hpp"
#include "rung/ops/gemm/shared/cuda/product.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// 8-bit operand of wgmma. `view`: matrices x outer x k.
struct ByteOperand {
  View<const std::uint8_t, 3> view;
  bool moves;  // a matrix per batch index instead of one for all
  bool packs;

  /// Describes `given`, of any 8-bit type; axis `outer` is shared with C.
  ByteOperand(const ConstTensorRef& given, int outer, int depth) {
    ConstTensorRef bytes = given;
    bytes.dtype = DType::u8;
    view = bytes.view<const std::uint8_t, 3>();
    moves = given.shape[0] > 1 && given.strides[0] != 0;
    if (!moves) view.shape[0] = 1;
    view.shape[1] = given.shape[outer];
    view.shape[2] = given.shape[depth];
    view.strides[1] = given.strides[outer];
    view.strides[2] = given.strides[depth];
    constexpr int box[3] = {1, 64, SwizzledTile<std::uint8_t, 64, true>::depth};
    packs = !tensor_map_support(view, box, Swizzle::bytes_128);
  }
  /// Returns the bytes of the packed copy; 0 if there is none.
  [[nodiscard]] std::int64_t bytes() const {
    return packs ? view.shape[0] * view.shape[1] * packed_pitch<std::uint8_t>(view.shape[2]) : 0;
  }
};

/// Operands of a product, and the cost of copying them.
struct ByteOperands {
  ByteOperand a, b;

  explicit ByteOperands(const Gemm::Args& args) : a(args.a, 1, 2), b(args.b, 2, 1) {}
  [[nodiscard]] std::int64_t bytes() const { return a.bytes() + b.bytes(); }
  /// Adds the cost of the copies, which are separate kernels, to `work`.
  void add_to(Work& work) const {
    work.launches = work.launches + (a.packs ? 1.0 : 0.0) + (b.packs ? 1.0 : 0.0);
    work.bytes = work.bytes + 2 * static_cast<double>(bytes());
  }
  void pack(Context& context, void* memory) {
    auto* const to = static_cast<std::uint8_t*>(memory);
    const std::int64_t of_a = a.bytes();
    if (a.packs) a.view = gemm_cuda::pack(context, a.view, to);
    if (b.packs) b.view = gemm_cuda::pack(context, b.view, to + of_a);
  }
};

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
