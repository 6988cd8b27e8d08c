// SPDX-License-Identifier: Apache-2.0
// stencil / cudnn: the peer cuDNN, its convolution of one channel in and out, loaded while running.
//
// Kernels  those that cuDNN's own heuristics put first, as frameworks call it; f32 without TF32.
// Limits   f32; full masks of odd extents, anchored in the middle, contiguous; zero edges; no
//          scale; extents and strides of 32 bits.
#include <algorithm>

#include "rung/ops/stencil/op/steps.hpp"
#include "rung/peers/cudnn.hpp"

namespace rung {
namespace {

/// cudnnConvolutionFwdAlgoPerf_t.
struct Candidate {
  int algorithm = 0;
  cudnn::Status status = 0;
  float time = 0;
  std::size_t workspace = 0;
  int determinism = 0;
  int math = 0;
  int reserved[3] = {};
};

/// What cuDNN's convolution takes, beyond what its other functions do.
struct Functions {
  cudnn::Status (*create_filter)(cudnn::Descriptor* descriptor);
  cudnn::Status (*set_filter)(cudnn::Descriptor descriptor, int type, int format, int rank,
                              const int* shape);
  cudnn::Status (*create)(cudnn::Descriptor* descriptor);
  cudnn::Status (*set)(cudnn::Descriptor descriptor, int axes, const int* padding,
                       const int* strides, const int* dilation, int mode, int type);
  cudnn::Status (*set_math)(cudnn::Descriptor descriptor, int math);
  cudnn::Status (*candidates)(cudnn::Handle handle, cudnn::Descriptor x_layout,
                              cudnn::Descriptor filter, cudnn::Descriptor convolution,
                              cudnn::Descriptor y_layout, int wanted, int* found, Candidate* made);
  cudnn::Status (*forward)(cudnn::Handle handle, const void* alpha, cudnn::Descriptor x_layout,
                           const void* x, cudnn::Descriptor filter, const void* mask,
                           cudnn::Descriptor convolution, int algorithm, void* workspace,
                           std::size_t bytes, const void* beta, cudnn::Descriptor y_layout,
                           void* y);

  Functions() {
    DynamicLibrary& library = cudnn::library().library;
    library.require(create_filter, "cudnnCreateFilterDescriptor");
    library.require(set_filter, "cudnnSetFilterNdDescriptor");
    library.require(create, "cudnnCreateConvolutionDescriptor");
    library.require(set, "cudnnSetConvolutionNdDescriptor");
    library.require(set_math, "cudnnSetConvolutionMathType");
    library.require(candidates, "cudnnGetConvolutionForwardAlgorithm_v7");
    library.require(forward, "cudnnConvolutionForward");
  }
};
const Functions& functions() {
  static const Functions loaded;
  return loaded;
}

/// At least two axes, which is what cuDNN takes: a line is an image of one row.
int axes_of(const Stencil::Args& args) { return std::max(args.axes, 2); }

/// The arrays as N x 1 x ... rows x columns.
ConstTensorRef as_batch(const ConstTensorRef& tensor, const Stencil::Args& args) {
  Extents shape;
  shape.rank = axes_of(args) + 2;
  shape[0] = args.arrays();
  shape[1] = 1;
  for (int axis = 2; axis < shape.rank; ++axis) {
    shape[axis] = args.axis[3 - shape.rank + axis].extent;
  }
  return {tensor.data, tensor.dtype, shape, shape.contiguous_strides(), tensor.device};
}

/// The descriptors of one shape of a call, and the algorithm chosen for it; one per thread.
struct State {
  cudnn::Session session;
  cudnn::Layout x;
  cudnn::Layout y;
  cudnn::Descriptor filter = nullptr;
  cudnn::Descriptor convolution = nullptr;
  Stencil::Args prepared;
  bool is_prepared = false;
  Candidate chosen;

  State() {
    cudnn::check(functions().create_filter(&filter), "a filter");
    cudnn::check(functions().create(&convolution), "a convolution");
  }

  void prepare(const Stencil::Args& args) {
    if (is_prepared && serves(args)) return;
    const ConstTensorRef from = as_batch(args.x, args);
    const ConstTensorRef to = as_batch(args.y, args);
    x.set(from.dtype, from.shape, from.strides);
    y.set(to.dtype, to.shape, to.strides);
    constexpr int channels_first = 0;
    constexpr int correlation = 1;
    constexpr int f32 = 0;
    const int axes = axes_of(args);
    int mask[5] = {1, 1, 1, 1, 1};
    int padding[3] = {};
    constexpr int ones[3] = {1, 1, 1};
    for (int i = 0; i < axes; ++i) {
      mask[2 + i] = args.axis[3 - axes + i].taps;
      padding[i] = args.axis[3 - axes + i].origin;
    }
    cudnn::check(functions().set_filter(filter, cudnn::type_of(args.mask.dtype), channels_first,
                                        axes + 2, mask),
                 "setting a filter");
    cudnn::check(functions().set(convolution, axes, padding, ones, ones, correlation, f32),
                 "setting a convolution");
    constexpr int without_tf32 = 3;
    cudnn::check(functions().set_math(convolution, without_tf32), "its arithmetic");
    int found = 0;
    Candidate candidates[8];
    cudnn::check(functions().candidates(session.handle, x.get(), filter, convolution, y.get(), 8,
                                        &found, candidates),
                 "its algorithms");
    Candidate* const end = candidates + found;
    Candidate* const first =
        std::find_if(candidates, end, [](const Candidate& c) { return c.status == 0; });
    if (first == end) throw Error(ErrorCode::internal, "cuDNN has no algorithm for this call");
    chosen = *first;
    prepared = args;
    is_prepared = true;
  }

 private:
  [[nodiscard]] bool serves(const Stencil::Args& args) const {
    if (args.axes != prepared.axes || args.arrays() != prepared.arrays()) return false;
    for (int i = 0; i < 3; ++i) {
      const Stencil::Axis& a = args.axis[i];
      const Stencil::Axis& b = prepared.axis[i];
      if (a.extent != b.extent || a.taps != b.taps || a.origin != b.origin) return false;
    }
    return true;
  }
};

bool is_dense(const ConstTensorRef& tensor) {
  const Extents strides = tensor.shape.contiguous_strides();
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    if (tensor.shape[axis] > 1 && tensor.strides[axis] != strides[axis]) return false;
  }
  return true;
}

Support supports(const Stencil::Args& args, const Context&) {
  if (args.y.empty()) return unsupported("nothing to do");
  if (args.weights != Stencil::Weights::mask) return unsupported("full masks only");
  if (args.x.dtype != DType::f32 || args.y.dtype != DType::f32) return unsupported("f32 only");
  if (args.edge != StencilEdge::zero) return unsupported("zero edges only");
  if (args.scale != 1) return unsupported("no scale");
  for (const Stencil::Axis& axis : args.axis) {
    if (axis.taps % 2 == 0 || axis.origin != axis.taps / 2) {
      return unsupported("masks of odd extents, anchored in the middle");
    }
  }
  if (!is_dense(args.x) || !is_dense(args.y) || !is_dense(args.mask)) {
    return unsupported("contiguous x, y and mask only");
  }
  if (!cudnn::Layout::fits(as_batch(args.x, args))) {
    return unsupported("extents and strides of 1 to 2^31 - 1");
  }
  return supported;
}

void run(const Stencil::Args& args, Context& context) {
  thread_local State state;
  state.session.open(context);
  state.prepare(args);
  const cudnn::Factors factors(args.x.dtype);
  stencil_detail::for_each_step(
      args, context, state.chosen.workspace, [&](const Stencil::Args& step, void* scratch) {
        cudnn::check(
            functions().forward(state.session.handle, factors.one(), state.x.get(), step.x.data,
                                state.filter, step.mask.data, state.convolution,
                                state.chosen.algorithm, scratch, state.chosen.workspace,
                                factors.zero(), state.y.get(), step.y.data),
            "convolving");
      });
}

const Rung<Stencil> self{{.name = "cudnn",
                          .backend = Backend::cuda,
                          .peer = true,
                          .about = cudnn::about,
                          .present = cudnn::present,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
