// SPDX-License-Identifier: Apache-2.0
// conv / channels first on tensor cores
//
// Idea     The TMA unrolls images only with channels last. Copies of x and w with channels last, in
//          the workspace, cost one pass over memory each, and the multiplication on tensor cores
//          saves far more: implicit_gemm_tma computes the layer between copies, and a last kernel
//          copies y to its own layout.
// Changes  Against implicit_gemm: tensor cores. Against implicit_gemm_tma: x, w and y of any strides.
// Cost     x, w and y are read and written once more; four launches.
// Limits   f16 and bf16, two dimensions at most; else as implicit_gemm_tma's, whose channels are
//          padded to 64 per tap: with 3 channels, 61 of 64 products are zeros.
#include "rung/ops/conv/shared/cuda/channels_last.hpp"
#include "rung/ops/conv/shared/cuda/im2col_tensor.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

template <class T>
__global__ void __launch_bounds__(layout_threads)
    conv_to_channels_last(View<const T, 5> from, T* to, std::int64_t pitch) {
  copy_to_last(from, to, pitch);
}
template <class T>
__global__ void __launch_bounds__(layout_threads)
    conv_from_channels_last(const T* from, std::int64_t pitch, View<T, 5> to) {
  copy_from_last(from, pitch, to);
}

/// Offsets of the copies in the workspace.
struct CopyOffsets {
  std::int64_t x, w, y, partial;
  std::size_t bytes;
};

/// Returns the layer on the copies, which begin at `memory`.
Conv::Args copied_layer(const Conv::Args& args, std::byte* memory, const CopyOffsets& at) {
  Conv::Args made = args;
  made.x = ChannelsLast(args.x).tensor(args.x, memory + at.x);
  made.w = ChannelsLast(args.w).tensor(args.w, memory + at.w);
  made.y = ChannelsLast(args.y).tensor(args.y, memory + at.y);
  return made;
}

CopyOffsets offsets_of(const Conv::Args& args, std::size_t partial) {
  LayoutMemory memory;
  CopyOffsets at{};
  at.x = memory.add(ChannelsLast(args.x).bytes());
  at.w = memory.add(ChannelsLast(args.w).bytes());
  at.y = memory.add(ChannelsLast(args.y).bytes());
  at.partial = memory.add(static_cast<std::int64_t>(partial));
  at.bytes = memory.total();
  return at;
}

/// Returns the layer on copies at placeholder addresses, aligned like workspaces.
Conv::Args placeholder_layer(const Conv::Args& args) {
  auto* const memory =
      reinterpret_cast<std::byte*>(std::uintptr_t{4096});  // NOLINT(performance-no-int-to-ptr)
  return copied_layer(args, memory, offsets_of(args, 0));
}

Support supports(const Conv::Args& args, const Context& context) {
  if (!is_flat(args.geometry)) return unsupported("two dimensions at most");
  if (size_of(args.x.dtype) != 2) return unsupported("f16 and bf16");
  if (args.y.empty() || args.terms() == 0) return unsupported("there is nothing to multiply");
  if (supports_im2col_tma(args, context)) return unsupported("implicit_gemm_tma needs no copies");
  for (const ConstTensorRef& tensor : {args.x, args.w, ConstTensorRef(args.y)}) {
    if (!ChannelsLast(tensor).fits_a_grid()) return unsupported("more than 2^31 - 1 tiles");
  }
  return supports_im2col_tma(placeholder_layer(args), context);
}

Work work(const Conv::Args& args, const Context& context) {
  Work all = im2col_tma_facts(placeholder_layer(args), context);
  const std::int64_t moved = args.x.size() + args.w.size() + args.y.size();
  all.bytes = all.bytes + 2.0 * static_cast<double>(moved * size_of(args.x.dtype));
  all.launches = all.launches + 3;
  return all;
}

void run(const Conv::Args& args, Context& context) {
  const std::size_t partial = im2col_partial_bytes(placeholder_layer(args), context);
  const CopyOffsets at = offsets_of(args, partial);
  auto* const memory = static_cast<std::byte*>(context.workspace(at.bytes));
  const Conv::Args layer = copied_layer(args, memory, at);
  visit<f16, bf16>(args.x.dtype, [&]<class T>() {
    const auto copy = [&](const ConstTensorRef& from, std::int64_t offset) {
      const ChannelsLast made(from);
      launch(context, made.launch_shape<T>(), conv_to_channels_last<T>, from.view<const T, 5>(),
             reinterpret_cast<T*>(memory + offset), made.pitch());
    };
    copy(args.x, at.x);
    copy(args.w, at.w);
    run_im2col_tma(layer, context, memory + at.partial);
    const ChannelsLast made(args.y);
    launch(context, made.launch_shape<T>(), conv_from_channels_last<T>,
           reinterpret_cast<const T*>(memory + at.y), made.pitch(), args.y.view<T, 5>());
  });
}

const Rung<Conv> self{{.name = "channels_first",
                       .after = "implicit_gemm_tma",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
