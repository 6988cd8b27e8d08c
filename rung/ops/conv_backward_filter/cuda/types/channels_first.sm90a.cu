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

/// Offsets of the copies in the workspace.
struct CopyOffsets {
  std::int64_t x, dy, dw, partial;
  std::size_t bytes;
};

CopyOffsets offsets_of(const ConvBackwardFilter::Args& args, std::size_t partial) {
  LayoutMemory memory;
  CopyOffsets at{};
  at.x = memory.add(ChannelsLast(args.x).bytes());
  at.dy = memory.add(ChannelsLast(args.dy).bytes());
  at.dw = memory.add(ChannelsLast(args.dw).bytes());
  at.partial = memory.add(static_cast<std::int64_t>(partial));
  at.bytes = memory.total();
  return at;
}

/// Returns the gradient on the copies, which begin at `memory`.
ConvBackwardFilter::Args copied_gradient(const ConvBackwardFilter::Args& args, std::byte* memory,
                                         const CopyOffsets& at) {
  ConvBackwardFilter::Args made = args;
  made.x = ChannelsLast(args.x).tensor(args.x, memory + at.x);
  made.dy = ChannelsLast(args.dy).tensor(args.dy, memory + at.dy);
  made.dw = ChannelsLast(args.dw).tensor(args.dw, memory + at.dw);
  return made;
}

/// Returns the gradient on copies at placeholder addresses, aligned like workspaces.
ConvBackwardFilter::Args placeholder_gradient(const ConvBackwardFilter::Args& args) {
  return copied_gradient(args, placeholder_memory(), offsets_of(args, 0));
}

Support supports(const ConvBackwardFilter::Args& args, const Context& context) {
  if (!is_flat(args.geometry)) return unsupported("two dimensions at most");
  if (size_of(args.dw.dtype) != 2) return unsupported("f16 and bf16");
  if (args.dw.empty() || args.dy.empty() || args.x.empty()) {
    return unsupported("there is nothing to multiply");
  }
  if (supports_gradient_tma(args, context)) return unsupported("implicit_gemm_tma needs no copies");
  for (const ConstTensorRef& tensor : {args.x, args.dy, ConstTensorRef(args.dw)}) {
    if (!ChannelsLast(tensor).fits_a_grid()) return unsupported("more than 2^31 - 1 tiles");
  }
  return supports_gradient_tma(placeholder_gradient(args), context);
}

Work work(const ConvBackwardFilter::Args& args, const Context& context) {
  Work all = gradient_tma_facts(placeholder_gradient(args), context);
  const std::int64_t moved = args.x.size() + args.dy.size() + args.dw.size();
  all.bytes = all.bytes + 2.0 * static_cast<double>(moved * size_of(args.x.dtype));
  all.launches = all.launches + 3;
  return all;
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  const std::size_t partial = gradient_partial_bytes(placeholder_gradient(args), context);
  const CopyOffsets at = offsets_of(args, partial);
  auto* const memory = static_cast<std::byte*>(context.workspace(at.bytes));
  copy_to_channels_last(args.x, memory + at.x, context);
  copy_to_channels_last(args.dy, memory + at.dy, context);
  run_gradient_tma(copied_gradient(args, memory, at), context, memory + at.partial);
  copy_from_channels_last(memory + at.dw, args.dw, context);
}

const Rung<ConvBackwardFilter> self{{.name = "channels_first",
                                     .after = "implicit_gemm_tma",
                                     .backend = device_backend,
                                     .supports = supports,
                                     .work = work,
                                     .run = run}};

}  // namespace
}  // namespace rung
