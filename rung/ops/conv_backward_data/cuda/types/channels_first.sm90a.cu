// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / channels first on tensor cores
//
// Idea     As conv's channels_first: dy is copied to the workspace with channels last,
//          implicit_gemm_tma computes dx from the copy, and a last kernel copies dx to the caller's
//          layout.
// Changes  Against implicit_gemm: tensor cores. Against implicit_gemm_tma: dy and dx of any
//          strides.
// Cost     dy and dx are read and written once more; two launches more than implicit_gemm_tma.
// Limits   f16 and bf16, two dimensions at most; otherwise those of implicit_gemm_tma.
#include "rung/ops/conv/shared/cuda/channels_last.hpp"
#include "rung/ops/conv_backward_data/cuda/detail/im2col_gradient.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

ChannelsLastCopies<2> copies_of(const ConvBackwardData::Args& args) {
  return ChannelsLastCopies<2>({args.dy, args.dx});
}

/// Returns the gradient on the copies, which begin at `memory`.
ConvBackwardData::Args gradient_on_copies(const ConvBackwardData::Args& args, std::byte* memory) {
  const auto copies = copies_of(args);
  ConvBackwardData::Args gradient = args;
  gradient.dy = copies.at(0, memory);
  gradient.dx = copies.at(1, memory);
  return gradient;
}

Support supports(const ConvBackwardData::Args& args, const Context& context) {
  if (!is_flat(args.geometry)) return unsupported("two dimensions at most");
  if (size_of(args.dx.dtype) != 2) return unsupported("f16 and bf16");
  if (args.dx.empty() || args.dy.empty() || args.w.empty()) {
    return unsupported("there is nothing to multiply");
  }
  if (supports_data_tma(args, context)) return unsupported("implicit_gemm_tma needs no copies");
  if (!copies_of(args).fit_grids()) return unsupported("tensors of fewer than 2^31 tiles");
  return supports_data_tma(gradient_on_copies(args, unallocated_memory()), context);
}

Work work(const ConvBackwardData::Args& args, const Context& context) {
  const auto gradient = gradient_on_copies(args, unallocated_memory());
  return copies_of(args).with_copies(data_tma_facts(gradient, context));
}

void run(const ConvBackwardData::Args& args, Context& context) {
  const auto copies = copies_of(args);
  const std::size_t gradient =
      data_tma_bytes(gradient_on_copies(args, unallocated_memory()), context);
  auto* const memory = static_cast<std::byte*>(context.workspace(copies.bytes() + gradient));
  copies.load(0, memory, context);
  run_data_tma(gradient_on_copies(args, memory), context, memory + copies.bytes());
  copy_from_channels_last(copies.at(1, memory).data, args.dx, context);
}

const Rung<ConvBackwardData> self{{.name = "channels_first",
                                   .after = "implicit_gemm_tma",
                                   .backend = device_backend,
                                   .supports = supports,
                                   .work = work,
                                   .run = run}};

}  // namespace
}  // namespace rung
