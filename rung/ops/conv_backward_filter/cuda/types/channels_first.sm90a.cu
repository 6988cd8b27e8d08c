// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / channels first on tensor cores
//
// Idea     As conv's channels_first: x and dy are copied to the workspace with channels last,
//          implicit_gemm_tma computes dw from the copies, and a last kernel copies dw to the
//          caller's layout.
// Changes  Against implicit_gemm: tensor cores. Against implicit_gemm_tma: x, dy and dw of any
//          strides.
// Cost     x, dy and dw are read and written once more; four launches in all, five if pixels are
//          sliced.
// Limits   f16 and bf16, two dimensions at most; otherwise those of implicit_gemm_tma. Few channels
//          leave its tiles of 128 filters by 64 channels mostly empty.
#include "rung/ops/conv/shared/cuda/channels_last.hpp"
#include "rung/ops/conv_backward_filter/cuda/detail/im2col_gradient.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

ChannelsLastCopies<3> copies_of(const ConvBackwardFilter::Args& args) {
  return ChannelsLastCopies<3>({args.x, args.dy, args.dw});
}

/// Returns the gradient on the copies, which begin at `memory`.
ConvBackwardFilter::Args gradient_on_copies(const ConvBackwardFilter::Args& args,
                                            std::byte* memory) {
  const auto copies = copies_of(args);
  ConvBackwardFilter::Args gradient = args;
  gradient.x = copies.at(0, memory);
  gradient.dy = copies.at(1, memory);
  gradient.dw = copies.at(2, memory);
  return gradient;
}

Support supports(const ConvBackwardFilter::Args& args, const Context& context) {
  if (!is_flat(args.geometry)) return unsupported("two dimensions at most");
  if (size_of(args.dw.dtype) != 2) return unsupported("f16 and bf16");
  if (args.dw.empty() || args.dy.empty() || args.x.empty()) {
    return unsupported("there is nothing to multiply");
  }
  if (supports_gradient_tma(args, context)) return unsupported("implicit_gemm_tma needs no copies");
  if (!copies_of(args).fit_grids()) return unsupported("tensors of fewer than 2^31 tiles");
  return supports_gradient_tma(gradient_on_copies(args, unallocated_memory()), context);
}

Work work(const ConvBackwardFilter::Args& args, const Context& context) {
  const auto gradient = gradient_on_copies(args, unallocated_memory());
  return copies_of(args).with_copies(gradient_tma_facts(gradient, context));
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  const auto copies = copies_of(args);
  const std::size_t partial =
      gradient_partial_bytes(gradient_on_copies(args, unallocated_memory()), context);
  auto* const memory = static_cast<std::byte*>(context.workspace(copies.bytes() + partial));
  copies.load(0, memory, context);
  copies.load(1, memory, context);
  run_gradient_tma(gradient_on_copies(args, memory), context, memory + copies.bytes());
  copy_from_channels_last(copies.at(2, memory).data, args.dw, context);
}

const Rung<ConvBackwardFilter> self{{.name = "channels_first",
                                     .after = "implicit_gemm_tma",
                                     .backend = device_backend,
                                     .supports = supports,
                                     .work = work,
                                     .run = run}};

}  // namespace
}  // namespace rung
