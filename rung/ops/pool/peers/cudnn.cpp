// SPDX-License-Identifier: Apache-2.0
// pool / cudnn: the peer cuDNN, its pooling function, loaded at run time.
//
// Kernels  CUDNN_POOLING_MAX, and the averages with and without counting the padding.
// Limits   no indices, bias, activation, dilation, partial windows at the end; extents and strides
//          of 32 bits.
#include "rung/peers/cudnn.hpp"
#include "rung/ops/pool/op/pool.hpp"

namespace rung {
namespace {

/// cuDNN's functions for pooling, beyond those that other operators use.
struct Functions {
  cudnn::Status (*create)(cudnn::Descriptor* descriptor);
  cudnn::Status (*set)(cudnn::Descriptor descriptor, int mode, int propagates_nan, int height,
                       int width, int padding_height, int padding_width, int stride_height,
                       int stride_width);
  cudnn::Status (*forward)(cudnn::Handle handle, cudnn::Descriptor pooling, const void* alpha,
                           cudnn::Descriptor x_layout, const void* x, const void* beta,
                           cudnn::Descriptor y_layout, void* y);

  Functions() {
    cudnn::library().library.require(create, "cudnnCreatePoolingDescriptor");
    cudnn::library().library.require(set, "cudnnSetPooling2dDescriptor");
    cudnn::library().library.require(forward, "cudnnPoolingForward");
  }
};
const Functions& functions() {
  static const Functions loaded;
  return loaded;
}

/// cuDNN's descriptors, one set per thread.
struct State {
  cudnn::Session session;
  cudnn::Layout x;
  cudnn::Layout y;
  cudnn::Descriptor pooling = nullptr;
  State() { cudnn::check(functions().create(&pooling), "a pooling"); }
};

/// Returns whether cuDNN's number of windows along an axis is the same: the last is not partial.
bool is_plain(const PoolAxis& axis) {
  const std::int64_t floor = (axis.in + 2 * axis.padding - axis.kernel) / axis.stride + 1;
  return axis.dilation == 1 && axis.out == floor;
}

Support supports(const Pool::Args& args, const Context&) {
  if (args.y.empty()) return unsupported("nothing to do");
  if (args.kind() != Pooling::max && args.kind() != Pooling::average) {
    return unsupported("maximum and average only");
  }
  if (args.has_indices() || args.has_epilogue()) {
    return unsupported("no indices, no bias, no activation");
  }
  if (!is_plain(args.rows) || !is_plain(args.columns)) {
    return unsupported("no dilation, no partial windows at the end");
  }
  if (!cudnn::Layout::fits(args.x) || !cudnn::Layout::fits(args.y)) {
    return unsupported("extents and strides of 1 to 2^31 - 1");
  }
  return supported;
}

void run(const Pool::Args& args, Context& context) {
  constexpr int max = 0;
  constexpr int average_with_padding = 1;
  constexpr int average_without = 2;
  constexpr int propagates_nan = 1;
  thread_local State state;
  state.session.open(context);
  state.x.set(args.x.dtype, args.x.shape, args.x.strides);
  state.y.set(args.y.dtype, args.y.shape, args.y.strides);
  const int mode = args.kind() == Pooling::max  ? max
                   : args.options.count_padding ? average_with_padding
                                                : average_without;
  const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
  cudnn::check(functions().set(state.pooling, mode, propagates_nan, narrow(args.rows.kernel),
                               narrow(args.columns.kernel), narrow(args.rows.padding),
                               narrow(args.columns.padding), narrow(args.rows.stride),
                               narrow(args.columns.stride)),
               "setting a pooling");
  const cudnn::Factors factors(args.x.dtype);
  cudnn::check(
      functions().forward(state.session.handle, state.pooling, factors.one(), state.x.get(),
                          args.x.data, factors.zero(), state.y.get(), args.y.data),
      "pooling");
}

const Rung<Pool> self{{.name = "cudnn",
                       .backend = Backend::cuda,
                       .peer = true,
                       .about = cudnn::about,
                       .present = cudnn::present,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
