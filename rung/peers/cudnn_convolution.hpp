// SPDX-License-Identifier: Apache-2.0
// cuDNN's forward convolution, by the algorithm that its own heuristics put first, as frameworks
// call it. f32 without TF32; f16 and bf16 on tensor cores.
#pragma once

#include <algorithm>
#include <cstddef>

#include "rung/core/operator.hpp"
#include "rung/peers/cudnn.hpp"

namespace rung::cudnn {

/// A layer. Shapes are N x C x image and K x C/G x filter, with two axes of an image at least.
struct ConvolutionShape {
  DType dtype = DType::f32;
  Extents x, x_strides, y, y_strides;
  Extents filter;  // contiguous in this order, or with the channels last
  bool channels_last = false;
  Extents padding, stride, dilation;  // per axis of the image
  int groups = 1;
  bool operator==(const ConvolutionShape&) const = default;
};

/// The descriptors of the shape prepared last; one per thread.
class Convolution {
 public:
  Convolution() {
    check(functions().create_filter(&filter_), "a filter");
    check(functions().create(&convolution_), "a convolution");
  }

  void prepare(Session& session, const ConvolutionShape& shape) {
    if (is_prepared_ && shape == prepared_) return;
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
    check(functions().candidates(session.handle, x_.get(), filter_, convolution_, y_.get(), 8,
                                 &found, candidates),
          "its algorithms");
    Candidate* const end = candidates + found;
    Candidate* const first =
        std::find_if(candidates, end, [](const Candidate& c) { return c.status == 0; });
    if (first == end) throw Error(ErrorCode::internal, "cuDNN has no algorithm for this call");
    chosen_ = *first;
    prepared_ = shape;
    is_prepared_ = true;
  }

  /// Bytes that run() needs.
  [[nodiscard]] std::size_t workspace() const { return chosen_.workspace; }

  void run(const Session& session, const void* x, const void* filter, void* y,
           void* workspace) const {
    const Factors factors(prepared_.dtype);
    check(functions().forward(session.handle, factors.one(), x_.get(), x, filter_, filter,
                              convolution_, chosen_.algorithm, workspace, chosen_.workspace,
                              factors.zero(), y_.get(), y),
          "convolving");
  }

 private:
  /// cudnnConvolutionFwdAlgoPerf_t.
  struct Candidate {
    int algorithm = 0;
    Status status = 0;
    float time = 0;
    std::size_t workspace = 0;
    int determinism = 0;
    int math = 0;
    int reserved[3] = {};
  };

  /// What convolutions take, beyond what cuDNN's other functions do.
  struct Functions {
    Status (*create_filter)(Descriptor* descriptor);
    Status (*set_filter)(Descriptor descriptor, int type, int format, int rank, const int* shape);
    Status (*create)(Descriptor* descriptor);
    Status (*set)(Descriptor descriptor, int axes, const int* padding, const int* strides,
                  const int* dilation, int mode, int type);
    Status (*set_groups)(Descriptor descriptor, int groups);
    Status (*set_math)(Descriptor descriptor, int math);
    Status (*candidates)(Handle handle, Descriptor x_layout, Descriptor filter,
                         Descriptor convolution, Descriptor y_layout, int wanted, int* found,
                         Candidate* made);
    Status (*forward)(Handle handle, const void* alpha, Descriptor x_layout, const void* x,
                      Descriptor filter_layout, const void* filter, Descriptor convolution,
                      int algorithm, void* workspace, std::size_t bytes, const void* beta,
                      Descriptor y_layout, void* y);

    Functions() {
      DynamicLibrary& from = library().library;
      from.require(create_filter, "cudnnCreateFilterDescriptor");
      from.require(set_filter, "cudnnSetFilterNdDescriptor");
      from.require(create, "cudnnCreateConvolutionDescriptor");
      from.require(set, "cudnnSetConvolutionNdDescriptor");
      from.require(set_groups, "cudnnSetConvolutionGroupCount");
      from.require(set_math, "cudnnSetConvolutionMathType");
      from.require(candidates, "cudnnGetConvolutionForwardAlgorithm_v7");
      from.require(forward, "cudnnConvolutionForward");
    }
  };
  static const Functions& functions() {
    static const Functions loaded;
    return loaded;
  }

  static void narrow(const Extents& from, int (&to)[max_rank]) {
    for (int axis = 0; axis < from.rank; ++axis) to[axis] = static_cast<int>(from[axis]);
  }

  Layout x_, y_;
  Descriptor filter_ = nullptr;
  Descriptor convolution_ = nullptr;
  ConvolutionShape prepared_;
  bool is_prepared_ = false;
  Candidate chosen_;
};

/// Whether elements lie without gaps, in the order of the axes; those of one element are anywhere.
inline bool is_dense(const ConstTensorRef& tensor) {
  const Extents strides = tensor.shape.contiguous_strides();
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    if (tensor.shape[axis] > 1 && tensor.strides[axis] != strides[axis]) return false;
  }
  return true;
}

}  // namespace rung::cudnn
