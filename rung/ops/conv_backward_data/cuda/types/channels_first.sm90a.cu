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

/// Offsets of the copies in the workspace.
struct CopyOffsets {
  std::int64_t dy, dx, gradient;
  std::size_t bytes;
};

CopyOffsets offsets_of(const ConvBackwardData::Args& args, std::int64_t gradient) {
  LayoutMemory memory;
  CopyOffsets at{};
  at.dy = memory.add(ChannelsLast(args.dy).bytes());
  at.dx = memory.add(ChannelsLast(args.dx).bytes());
  at.gradient = memory.add(gradient);
  at.bytes = memory.total();
  return at;
}

/// Returns the gradient on the copies, which begin at `memory`.
ConvBackwardData::Args copied_gradient(const ConvBackwardData::Args& args, std::byte* memory,
                                       const CopyOffsets& at) {
  ConvBackwardData::Args made = args;
  made.dy = ChannelsLast(args.dy).tensor(args.dy, memory + at.dy);
  made.dx = ChannelsLast(args.dx).tensor(args.dx, memory + at.dx);
  return made;
}

/// Returns the gradient on copies at placeholder addresses, aligned like workspaces.
ConvBackwardData::Args placeholder_gradient(const ConvBackwardData::Args& args) {
  return copied_gradient(args, placeholder_memory(), offsets_of(args, 0));
}

Support supports(const ConvBackwardData::Args& args, const Context& context) {
  if (!is_flat(args.geometry)) return unsupported("two dimensions at most");
  if (size_of(args.dx.dtype) != 2) return unsupported("f16 and bf16");
  if (args.dx.empty() || args.dy.empty() || args.w.empty()) {
    return unsupported("there is nothing to multiply");
  }
  if (supports_data_tma(args, context)) return unsupported("implicit_gemm_tma needs no copies");
  for (const ConstTensorRef& tensor : {args.dy, ConstTensorRef(args.dx)}) {
    if (!ChannelsLast(tensor).fits_a_grid()) return unsupported("more than 2^31 - 1 tiles");
  }
  return supports_data_tma(placeholder_gradient(args), context);
}

Work work(const ConvBackwardData::Args& args, const Context& context) {
  Work all = data_tma_facts(placeholder_gradient(args), context);
  const std::int64_t moved = args.dy.size() + args.dx.size();
  all.bytes = all.bytes + 2.0 * static_cast<double>(moved * size_of(args.w.dtype));
  all.launches = all.launches + 2;
  return all;
}

void run(const ConvBackwardData::Args& args, Context& context) {
  const std::int64_t gradient = data_tma_bytes(placeholder_gradient(args), context);
  const CopyOffsets at = offsets_of(args, gradient);
  auto* const memory = static_cast<std::byte*>(context.workspace(at.bytes));
  copy_to_channels_last(args.dy, memory + at.dy, context);
  run_data_tma(copied_gradient(args, memory, at), context, memory + at.gradient);
  copy_from_channels_last(memory + at.dx, args.dx, context);
}

const Rung<ConvBackwardData> self{{.name = "channels_first",
                                   .after = "implicit_gemm_tma",
                                   .backend = device_backend,
                                   .supports = supports,
                                   .work = work,
                                   .run = run}};

}  // namespace
}  // namespace rung
