// SPDX-License-Identifier: Apache-2.0
// cuDNN's convolution and its two gradients, by the first algorithm of cuDNN's heuristics that
// keeps the requested accuracy, as frameworks select it. f32 without TF32; f16 and bf16 on tensor
// cores.
#pragma once

#include <algorithm>
#include <cstddef>

#include "rung/core/operator.hpp"
#include "rung/peers/cudnn.hpp"
#include "rung/peers/cudnn_algorithms.hpp"

namespace rung::cudnn {

/// Shape of a convolution layer: N x C x image and K x C/G x filter, with at least two image axes.
struct ConvolutionShape {
  DType dtype = DType::f32;
  Extents x, x_strides, y, y_strides;
  Extents filter;  // contiguous in this order, or with the channels last
  bool channels_last = false;
  Extents padding, stride, dilation;  // per image axis
  int groups = 1;
  bool transforms = false;  // permits Winograd and FFT, whose errors spread over a whole tile
  bool operator==(const ConvolutionShape&) const = default;
};

/// Descriptors of the most recently prepared shape; one object per thread.
class Convolution {
 public:
  Convolution() {
    check(functions().create_filter(&filter_), "a filter");
    check(functions().create(&convolution_), "a convolution");
  }

  void prepare(Session& session, const ConvolutionShape& shape, Pass pass = Pass::forward) {
    if (is_prepared_ && shape == prepared_ && pass == pass_) return;
    is_prepared_ = false;
    x_.set(shape.dtype, shape.x, shape.x_strides);
    y_.set(shape.dtype, shape.y, shape.y_strides);
    constexpr int channels_first = 0;
    constexpr int channels_last = 1;
    constexpr int correlation = 1;
    constexpr int without_tf32 = 3;
    constexpr int on_tensor_cores = 1;
    int filter[max_rank] = {};
    int padding[max_rank] = {};
    int stride[max_rank] = {};
    int dilation[max_rank] = {};
    narrow(shape.filter, filter);
    narrow(shape.padding, padding);
    narrow(shape.stride, stride);
    narrow(shape.dilation, dilation);
    check(functions().set_filter(filter_, type_of(shape.dtype),
                                 shape.channels_last ? channels_last : channels_first,
                                 shape.filter.rank, filter),
          "setting a filter");
    const bool is_wide = shape.dtype == DType::f64;
    check(functions().set(convolution_, shape.padding.rank, padding, stride, dilation, correlation,
                          type_of(is_wide ? DType::f64 : DType::f32)),
          "setting a convolution");
    check(functions().set_groups(convolution_, shape.groups), "its groups");
    const bool is_narrow = shape.dtype == DType::f16 || shape.dtype == DType::bf16;
    check(functions().set_math(convolution_, is_narrow ? on_tensor_cores : without_tf32),
          "its arithmetic");
    int found = 0;
    Candidate candidates[8];
    check(find(session.handle, pass, &found, candidates), "its algorithms");
    Candidate* const end = candidates + found;
    Candidate* const first = std::find_if(candidates, end, [&](const Candidate& c) {
      return c.status == 0 && (shape.transforms || !is_transform(pass, c.algorithm));
    });
    if (first == end) throw Error(ErrorCode::internal, "cuDNN has no algorithm for this call");
    chosen_ = *first;
    prepared_ = shape;
    pass_ = pass;
    is_prepared_ = true;
  }

  /// Returns the bytes of workspace that run() needs.
  [[nodiscard]] std::size_t workspace() const { return chosen_.workspace; }

  /// Runs the pass: writes the tensor that the pass computes, and reads the other two.
  void run(const Session& session, const void* x, const void* filter, const void* y,
           void* workspace) const {
    const auto written = [](const void* data) {
      return const_cast<void*>(data);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    };
    const Factors factors(prepared_.dtype);
    const Handle handle = session.handle;
    const std::size_t bytes = chosen_.workspace;
    switch (pass_) {
      case Pass::forward:
        return check(functions().forward(handle, factors.one(), x_.get(), x, filter_, filter,
                                         convolution_, chosen_.algorithm, workspace, bytes,
                                         factors.zero(), y_.get(), written(y)),
                     "convolving");
      case Pass::backward_data:
        return check(functions().backward_data(handle, factors.one(), filter_, filter, y_.get(), y,
                                               convolution_, chosen_.algorithm, workspace, bytes,
                                               factors.zero(), x_.get(), written(x)),
                     "the gradient of x");
      case Pass::backward_filter:
        return check(functions().backward_filter(handle, factors.one(), x_.get(), x, y_.get(), y,
                                                 convolution_, chosen_.algorithm, workspace, bytes,
                                                 factors.zero(), filter_, written(filter)),
                     "the gradient of a filter");
    }
  }

 private:
  /// Layout of cudnnConvolutionFwdAlgoPerf_t and of the gradients' types.
  struct Candidate {
    int algorithm = 0;
    Status status = 0;
    float time = 0;
    std::size_t workspace = 0;
    int determinism = 0;
    int math = 0;
    int reserved[3] = {};
  };

  /// cuDNN's functions for one pass.
  struct Functions {
    Status (*create_filter)(Descriptor* descriptor);
    Status (*set_filter)(Descriptor descriptor, int type, int format, int rank, const int* shape);
    Status (*create)(Descriptor* descriptor);
    Status (*set)(Descriptor descriptor, int axes, const int* padding, const int* strides,
                  const int* dilation, int mode, int type);
    Status (*set_groups)(Descriptor descriptor, int groups);
    Status (*set_math)(Descriptor descriptor, int math);
    /// Function that lists candidate algorithms, given the two operands and the result.
    using Candidates = Status (*)(Handle handle, Descriptor first, Descriptor second,
                                  Descriptor convolution, Descriptor result, int wanted, int* found,
                                  Candidate* made);
    Candidates candidates, candidates_data, candidates_filter;
    using Run = Status (*)(Handle handle, const void* alpha, Descriptor first_layout,
                           const void* first, Descriptor second_layout, const void* second,
                           Descriptor convolution, int algorithm, void* workspace,
                           std::size_t bytes, const void* beta, Descriptor result_layout,
                           void* result);
    Run forward, backward_data, backward_filter;

    Functions() {
      DynamicLibrary& from = library().library;
      from.require(create_filter, "cudnnCreateFilterDescriptor");
      from.require(set_filter, "cudnnSetFilterNdDescriptor");
      from.require(create, "cudnnCreateConvolutionDescriptor");
      from.require(set, "cudnnSetConvolutionNdDescriptor");
      from.require(set_groups, "cudnnSetConvolutionGroupCount");
      from.require(set_math, "cudnnSetConvolutionMathType");
      from.require(candidates, "cudnnGetConvolutionForwardAlgorithm_v7");
      from.require(candidates_data, "cudnnGetConvolutionBackwardDataAlgorithm_v7");
      from.require(candidates_filter, "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
      from.require(forward, "cudnnConvolutionForward");
      from.require(backward_data, "cudnnConvolutionBackwardData");
      from.require(backward_filter, "cudnnConvolutionBackwardFilter");
    }
  };
  static const Functions& functions() {
    static const Functions loaded;
    return loaded;
  }

  Status find(Handle handle, Pass pass, int* found, Candidate (&made)[8]) const {
    switch (pass) {
      case Pass::forward:
        break;
      case Pass::backward_data:
        return functions().candidates_data(handle, filter_, y_.get(), convolution_, x_.get(), 8,
                                           found, made);
      case Pass::backward_filter:
        return functions().candidates_filter(handle, x_.get(), y_.get(), convolution_, filter_, 8,
                                             found, made);
    }
    return functions().candidates(handle, x_.get(), filter_, convolution_, y_.get(), 8, found,
                                  made);
  }

  static void narrow(const Extents& from, int (&to)[max_rank]) {
    for (int axis = 0; axis < from.rank; ++axis) to[axis] = static_cast<int>(from[axis]);
  }

  Layout x_, y_;
  Descriptor filter_ = nullptr;
  Descriptor convolution_ = nullptr;
  ConvolutionShape prepared_;
  Pass pass_ = Pass::forward;
  bool is_prepared_ = false;
  Candidate chosen_;
};

/// Returns whether a tensor is contiguous in the order of its axes; strides of extents of 1 are
/// ignored.
inline bool is_dense(const ConstTensorRef& tensor) {
  const Extents strides = tensor.shape.contiguous_strides();
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    if (tensor.shape[axis] > 1 && tensor.strides[axis] != strides[axis]) return false;
  }
  return true;
}

}  // namespace rung::cudnn
