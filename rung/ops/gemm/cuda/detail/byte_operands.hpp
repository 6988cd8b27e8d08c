// SPDX-License-Identifier: Apache-2.0
// 8-bit operands for wgmma, which takes them with k contiguous only: as they are where the copy
// engine can fetch them so, else as a copy in the workspace.
#pragma once

#include <cstdint>

#include "rung/device/swizzled_tile.hpp"
#include "rung/ops/gemm/cuda/detail/pack.hpp"
#include "rung/ops/gemm/shared/cuda/product.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// `view`: matrices x outer x k.
struct ByteOperand {
  View<const std::uint8_t, 3> view;
  bool moves;  // a matrix for each of the batch, not one for all
  bool packs;

  /// `given`: of any 8-bit type; axis `outer` is shared with C.
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
  /// Bytes of the copy.
  [[nodiscard]] std::int64_t bytes() const {
    return packs ? view.shape[0] * view.shape[1] * packed_pitch<std::uint8_t>(view.shape[2]) : 0;
  }
};

/// Both operands of a product, and how long copying them takes.
struct ByteOperands {
  ByteOperand a, b;

  explicit ByteOperands(const Gemm::Args& args) : a(args.a, 1, 2), b(args.b, 2, 1) {}
  [[nodiscard]] std::int64_t bytes() const { return a.bytes() + b.bytes(); }
  /// The copies are kernels of their own.
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
