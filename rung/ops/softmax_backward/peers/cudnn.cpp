// SPDX-License-Identifier: Apache-2.0
// softmax_backward / cudnn: cuDNN's softmax gradient as a peer, loaded at run time.
//
// Kernels  CUDNN_SOFTMAX_ACCURATE and CUDNN_SOFTMAX_LOG, in channel mode, where rows are along C of
//          an N x C x 1 x W tensor.
// Limits   One type for all tensors, no scale, 32-bit sizes and strides, finite values: cuDNN's
//          results for infinities and NaN differ from the contract.
#include <limits>

#include "rung/ops/softmax/shared/value_range.hpp"
#include "rung/ops/softmax_backward/op/softmax_backward.hpp"
#include "rung/peers/cudnn_rows.hpp"

namespace rung {
namespace {

struct Functions {
  cudnn::Status (*backward)(cudnn::Handle handle, int algorithm, int mode, const void* alpha,
                            cudnn::Descriptor y_layout, const void* y, cudnn::Descriptor dy_layout,
                            const void* dy, const void* beta, cudnn::Descriptor dx_layout,
                            void* dx);

  Functions() { cudnn::library().library.require(backward, "cudnnSoftmaxBackward"); }
};
const Functions& functions() {
  static const Functions loaded;
  return loaded;
}

Support supports(const SoftmaxBackward::Args& args, const Context& context) {
  if (args.empty()) return unsupported("nothing to do");
  if (args.scale != 1.0) return unsupported("cuDNN's softmax has no scale");
  if (args.dx.dtype != args.y.dtype) return unsupported("the result's type must be that of y");
  if (!cudnn::row_layout(args.rows).fits)
    return unsupported("more axes or larger strides than cuDNN takes");
  // Only check small tensors: large ones, which hold ordinary values, would take longer to check
  // than to time.
  constexpr std::int64_t worth_looking = std::int64_t{1} << 22;
  if (args.length() * args.count() <= worth_looking &&
      !softmax_values::are_below(std::numeric_limits<double>::infinity(), args.scale, args.y,
                                 context)) {
    return unsupported("answers infinities and NaN otherwise than we do");
  }
  return supported;
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  constexpr int accurate = 1;
  constexpr int log = 2;
  constexpr int by_channel = 1;
  thread_local cudnn::Session session;
  thread_local cudnn::Layout layouts[3];
  session.open(context);
  const cudnn::RowLayout layout = cudnn::row_layout(args.rows);
  for (int tensor = 0; tensor < 3; ++tensor) {
    cudnn::describe_rows(layouts[tensor], args.y.dtype, args.rows, layout, tensor);
  }
  const cudnn::Factors factors(args.y.dtype);
  cudnn::check(functions().backward(session.handle, args.log ? log : accurate, by_channel,
                                    factors.one(), layouts[0].get(), args.y.data, layouts[1].get(),
                                    args.dy.data, factors.zero(), layouts[2].get(), args.dx.data),
               "softmax backward");
}

const Rung<SoftmaxBackward> self{{.name = "cudnn",
                                  .backend = Backend::cuda,
                                  .peer = true,
                                  .about = cudnn::about,
                                  .present = cudnn::present,
                                  .supports = supports,
                                  .run = run}};

}  // namespace
}  // namespace rung
