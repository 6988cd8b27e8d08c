// SPDX-License-Identifier: Apache-2.0
// softmax / cudnn: the peer cuDNN, its softmax functions, loaded while running.
//
// Kernels  CUDNN_SOFTMAX_ACCURATE, which subtracts the maximum, and CUDNN_SOFTMAX_LOG; in channel
//          mode, where the rows lie along C of an N x C x 1 x W tensor.
// Limits   one type for all tensors, no scale, sizes and strides of 32 bits, finite values: its
//          answers to infinities and NaN are not ours.
#include <cuda_runtime.h>

#include <limits>
#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/ops/softmax/op/value_range.hpp"

namespace rung {
namespace {

/// cuDNN's C interface as far as it is used, declared here because its development package need not
/// be there.
struct Cudnn {
  using Handle = void*;
  using Descriptor = void*;
  using Status = int;  // 0: success
  DynamicLibrary library{"RUNG_PEER_CUDNN", {"libcudnn.so.9", "libcudnn.so.8"}};
  std::size_t (*version)();
  const char* (*error_string)(Status status);
  Status (*create)(Handle* handle);
  Status (*set_stream)(Handle handle, cudaStream_t stream);
  Status (*create_descriptor)(Descriptor* descriptor);
  Status (*set_descriptor)(Descriptor descriptor, int type, int n, int c, int h, int w,
                           int n_stride, int c_stride, int h_stride, int w_stride);
  Status (*forward)(Handle handle, int algorithm, int mode, const void* alpha, Descriptor x_layout,
                    const void* x, const void* beta, Descriptor y_layout, void* y);
  Status (*backward)(Handle handle, int algorithm, int mode, const void* alpha, Descriptor y_layout,
                     const void* y, Descriptor dy_layout, const void* dy, const void* beta,
                     Descriptor dx_layout, void* dx);

  Cudnn() {
    library.require(version, "cudnnGetVersion");
    library.require(error_string, "cudnnGetErrorString");
    library.require(create, "cudnnCreate");
    library.require(set_stream, "cudnnSetStream");
    library.require(create_descriptor, "cudnnCreateTensorDescriptor");
    library.require(set_descriptor, "cudnnSetTensor4dDescriptorEx");
    library.require(forward, "cudnnSoftmaxForward");
    library.require(backward, "cudnnSoftmaxBackward");
  }
};

Cudnn& cudnn() {
  static Cudnn loaded;
  return loaded;
}

void check(Cudnn::Status status, const char* doing) {
  if (status == 0) return;
  throw Error(ErrorCode::device,
              std::string("cuDNN, ") + doing + ": " + cudnn().error_string(status));
}

/// One a thread and device; they live as long as the process, as cuDNN's own state does.
struct Session {
  int device = -1;
  Cudnn::Handle handle = nullptr;
  Cudnn::Descriptor descriptors[3] = {};

  void open(const Context& context) {
    if (device != context.device().index) {
      device = context.device().index;
      if (cudaSetDevice(device) != cudaSuccess) throw Error(ErrorCode::device, "cudaSetDevice");
      check(cudnn().create(&handle), "cudnnCreate");
    }
    for (Cudnn::Descriptor& descriptor : descriptors) {
      if (descriptor == nullptr) check(cudnn().create_descriptor(&descriptor), "a descriptor");
    }
    check(cudnn().set_stream(handle, static_cast<cudaStream_t>(context.stream())), "its stream");
  }
};

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

void describe(Cudnn::Descriptor descriptor, const Softmax::Args& args, const Layout& layout,
              int tensor) {
  const auto stride = [&](int axis) {
    return axis < 0 ? 1 : static_cast<int>(args.rows.others.strides[tensor][axis]);
  };
  constexpr int f32 = 0;
  constexpr int f64 = 1;
  constexpr int f16 = 2;
  constexpr int bf16 = 9;
  const int type = args.x.dtype == DType::f32   ? f32
                   : args.x.dtype == DType::f64 ? f64
                   : args.x.dtype == DType::f16 ? f16
                                                : bf16;
  check(cudnn().set_descriptor(descriptor, type, static_cast<int>(layout.n),
                               static_cast<int>(args.length()), 1, static_cast<int>(layout.w),
                               stride(layout.n_axis), static_cast<int>(args.rows.steps[tensor]), 1,
                               stride(layout.w_axis)),
        "a layout");
}

Support present() { return cudnn().library.present(); }

std::string about() { return "cuDNN " + std::to_string(cudnn().version()); }

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
  thread_local Session session;
  session.open(context);
  const Layout layout = layout_of(args);
  for (int tensor = 0; tensor < 3; ++tensor) {
    describe(session.descriptors[tensor], args, layout, tensor);
  }
  // Factors are doubles for f64, floats for all others.
  const double one[2] = {1, 0};
  const float one_f32[2] = {1, 0};
  const bool wide = args.x.dtype == DType::f64;
  const void* alpha = wide ? static_cast<const void*>(&one[0]) : &one_f32[0];
  const void* beta = wide ? static_cast<const void*>(&one[1]) : &one_f32[1];
  const int algorithm = args.log ? log : accurate;
  const auto& d = session.descriptors;
  check(args.backward ? cudnn().backward(session.handle, algorithm, by_channel, alpha, d[0],
                                         args.x.data, d[1], args.dy.data, beta, d[2], args.y.data)
                      : cudnn().forward(session.handle, algorithm, by_channel, alpha, d[0],
                                        args.x.data, beta, d[2], args.y.data),
        "softmax");
}

const Rung<Softmax> self{{.name = "cudnn",
                          .backend = Backend::cuda,
                          .peer = true,
                          .about = about,
                          .present = present,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
