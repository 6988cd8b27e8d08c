// SPDX-License-Identifier: Apache-2.0
// softmax / cudnn: the peer cuDNN, its softmax functions, loaded while running.
//
// Kernels  CUDNN_SOFTMAX_ACCURATE, which subtracts the maximum, and CUDNN_SOFTMAX_LOG; in channel
//          mode, where the rows are along C of an N x C x 1 x W tensor.
// Limits   one type for all tensors, no scale, sizes and strides of 32 bits, finite values: its
//          answers to infinities and NaN are not ours.
#include <limits>

#include "rung/ops/softmax/op/value_range.hpp"
#include "rung/peers/cudnn.hpp"

namespace rung {
namespace {

/// What cuDNN's softmax takes, beyond what its other functions do.
struct Functions {
  cudnn::Status (*forward)(cudnn::Handle handle, int algorithm, int mode, const void* alpha,
                           cudnn::Descriptor x_layout, const void* x, const void* beta,
                           cudnn::Descriptor y_layout, void* y);
  cudnn::Status (*backward)(cudnn::Handle handle, int algorithm, int mode, const void* alpha,
                            cudnn::Descriptor y_layout, const void* y, cudnn::Descriptor dy_layout,
                            const void* dy, const void* beta, cudnn::Descriptor dx_layout,
                            void* dx);

  Functions() {
    cudnn::library().library.require(forward, "cudnnSoftmaxForward");
    cudnn::library().library.require(backward, "cudnnSoftmaxBackward");
  }
};
const Functions& functions() {
  static const Functions loaded;
  return loaded;
}

/// The call as N x C x 1 x W: rows along C, those that are adjacent along W.
struct Layout {
  std::int64_t n = 1, w = 1;
  int n_axis = -1, w_axis = -1;  // of the collapsed axes; -1: none
  bool fits = false;
};
Layout layout_of(const Softmax::Args& args) {
  const auto& others = args.rows.others;
  Layout layout;
  layout.fits = others.rank <= 2;
  if (others.rank > 0) {
    layout.w_axis = others.rank - 1;
    layout.w = others.shape[layout.w_axis];
  }
  if (others.rank > 1) {
    layout.n_axis = 0;
    layout.n = others.shape[0];
  }
  if (others.rank == 1 && args.rows.are_contiguous()) {
    std::swap(layout.n, layout.w);
    std::swap(layout.n_axis, layout.w_axis);
  }
  constexpr std::int64_t limit = std::numeric_limits<int>::max();
  layout.fits = layout.fits && layout.n <= limit && layout.w <= limit && args.length() <= limit;
  for (int tensor = 0; tensor < 3; ++tensor) {
    for (int axis = 0; axis < others.rank; ++axis) {
      const std::int64_t stride = others.strides[tensor][axis];
      layout.fits = layout.fits && stride > 0 && stride <= limit;
    }
    const std::int64_t step = args.rows.steps[tensor];
    layout.fits = layout.fits && step > 0 && step <= limit;
  }
  return layout;
}

void describe(cudnn::Layout& described, const Softmax::Args& args, const Layout& layout,
              int tensor) {
  const auto stride = [&](int axis) {
    return axis < 0 ? 1 : args.rows.others.strides[tensor][axis];
  };
  described.set(args.x.dtype, {layout.n, args.length(), 1, layout.w},
                {stride(layout.n_axis), args.rows.steps[tensor], 1, stride(layout.w_axis)});
}

Support supports(const Softmax::Args& args, const Context& context) {
  if (args.empty()) return unsupported("nothing to do");
  if (args.scale != 1.0) return unsupported("cuDNN's softmax has no scale");
  if (args.y.dtype != args.x.dtype) return unsupported("the result's type must be that of x");
  if (!layout_of(args).fits) return unsupported("more axes or larger strides than cuDNN takes");
  // Looking through large ones would take longer than timing them: those are ordinary numbers.
  constexpr std::int64_t worth_looking = std::int64_t{1} << 22;
  if (args.length() * args.count() <= worth_looking &&
      !softmax_values::are_below(std::numeric_limits<double>::infinity(), args, context)) {
    return unsupported("answers infinities and NaN otherwise than we do");
  }
  return supported;
}

void run(const Softmax::Args& args, Context& context) {
  constexpr int accurate = 1;
  constexpr int log = 2;
  constexpr int by_channel = 1;
  thread_local cudnn::Session session;
  thread_local cudnn::Layout layouts[3];
  session.open(context);
  const Layout layout = layout_of(args);
  for (int tensor = 0; tensor < 3; ++tensor) describe(layouts[tensor], args, layout, tensor);
  const cudnn::Factors factors(args.x.dtype);
  const int algorithm = args.log ? log : accurate;
  cudnn::check(args.backward ? functions().backward(session.handle, algorithm, by_channel,
                                                    factors.one(), layouts[0].get(), args.x.data,
                                                    layouts[1].get(), args.dy.data, factors.zero(),
                                                    layouts[2].get(), args.y.data)
                             : functions().forward(session.handle, algorithm, by_channel,
                                                   factors.one(), layouts[0].get(), args.x.data,
                                                   factors.zero(), layouts[2].get(), args.y.data),
               "softmax");
}

const Rung<Softmax> self{{.name = "cudnn",
                          .backend = Backend::cuda,
                          .peer = true,
                          .about = cudnn::about,
                          .present = cudnn::present,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
