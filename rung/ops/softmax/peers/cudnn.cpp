// SPDX-License-Identifier: Apache-2.0
// softmax / cudnn: cuDNN's softmax as a peer, loaded at run time.
//
// Kernels  CUDNN_SOFTMAX_ACCURATE, which subtracts the maximum, and CUDNN_SOFTMAX_LOG, in channel
//          mode, where rows are along C of an N x C x 1 x W tensor.
// Limits   One type for all tensors, no scale, 32-bit sizes and strides, finite values: cuDNN's
//          results for infinities and NaN differ from the contract.
#include <limits>

#include "rung/ops/softmax/shared/value_range.hpp"
#include "rung/peers/cudnn_rows.hpp"

namespace rung {
namespace {

struct Functions {
  cudnn::Status (*forward)(cudnn::Handle handle, int algorithm, int mode, const void* alpha,
                           cudnn::Descriptor x_layout, const void* x, const void* beta,
                           cudnn::Descriptor y_layout, void* y);

  Functions() { cudnn::library().library.require(forward, "cudnnSoftmaxForward"); }
};
const Functions& functions() {
  static const Functions loaded;
  return loaded;
}

Support supports(const Softmax::Args& args, const Context& context) {
  if (args.empty()) return unsupported("nothing to do");
  if (args.scale != 1.0) return unsupported("cuDNN's softmax has no scale");
  if (args.y.dtype != args.x.dtype) return unsupported("the result's type must be that of x");
  if (!cudnn::row_layout(args.rows).fits)
    return unsupported("more axes or larger strides than cuDNN takes");
  // Only check small tensors: large ones, which hold ordinary values, would take longer to check
  // than to time.
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
  thread_local cudnn::Layout layouts[2];
  session.open(context);
  const cudnn::RowLayout layout = cudnn::row_layout(args.rows);
  for (int tensor = 0; tensor < 2; ++tensor) {
    cudnn::describe_rows(layouts[tensor], args.x.dtype, args.rows, layout, tensor);
  }
  const cudnn::Factors factors(args.x.dtype);
  cudnn::check(functions().forward(session.handle, args.log ? log : accurate, by_channel,
                                   factors.one(), layouts[0].get(), args.x.data, factors.zero(),
                                   layouts[1].get(), args.y.data),
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
