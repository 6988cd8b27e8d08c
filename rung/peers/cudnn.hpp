// SPDX-License-Identifier: Apache-2.0
// cuDNN as a library that may be missing: loaded on first use, its failures turned into Error. What
// its peers use of its C interface is declared here, because its development package need not be
// there.
#pragma once

#include <cuda_runtime.h>

#include <limits>
#include <string>

#include "rung/core/context.hpp"
#include "rung/core/dynamic_library.hpp"
#include "rung/core/error.hpp"

namespace rung::cudnn {

using Handle = void*;
using Descriptor = void*;
using Status = int;  // 0: success

struct Library {
  DynamicLibrary library{"RUNG_PEER_CUDNN", {"libcudnn.so.9", "libcudnn.so.8"}};
  std::size_t (*version)();
  const char* (*error_string)(Status status);
  Status (*create)(Handle* handle);
  Status (*set_stream)(Handle handle, cudaStream_t stream);
  Status (*create_tensor)(Descriptor* descriptor);
  Status (*set_tensor)(Descriptor descriptor, int type, int rank, const int* shape,
                       const int* strides);

  Library() {
    library.require(version, "cudnnGetVersion");
    library.require(error_string, "cudnnGetErrorString");
    library.require(create, "cudnnCreate");
    library.require(set_stream, "cudnnSetStream");
    library.require(create_tensor, "cudnnCreateTensorDescriptor");
    library.require(set_tensor, "cudnnSetTensorNdDescriptor");
  }
};

inline Library& library() {
  static Library loaded;
  return loaded;
}
inline Support present() { return library().library.present(); }
inline std::string about() { return "cuDNN " + std::to_string(library().version()); }

inline void check(Status status, const char* doing) {
  if (status == 0) return;
  throw Error(ErrorCode::device,
              std::string("cuDNN, ") + doing + ": " + library().error_string(status));
}

/// A handle per thread and device. It lives as long as the process, as cuDNN's own state does.
struct Session {
  int device = -1;
  Handle handle = nullptr;

  /// Makes the context's device current and its stream that of the handle.
  void open(const Context& context) {
    if (device != context.device().index) {
      device = context.device().index;
      if (cudaSetDevice(device) != cudaSuccess) throw Error(ErrorCode::device, "cudaSetDevice");
      check(library().create(&handle), "cudnnCreate");
    }
    check(library().set_stream(handle, static_cast<cudaStream_t>(context.stream())), "its stream");
  }
};

/// cudnnDataType_t; -1 where it has none.
inline int type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 0;
    case DType::f64:
      return 1;
    case DType::f16:
      return 2;
    case DType::bf16:
      return 9;
    default:
      return -1;
  }
}

/// Factors 1 and 0 as cuDNN reads them: doubles for f64, floats for all other types.
struct Factors {
  double wide[2] = {1, 0};
  float narrow[2] = {1, 0};
  bool is_wide;
  explicit Factors(DType dtype) : is_wide(dtype == DType::f64) {}
  [[nodiscard]] const void* one() const {
    return is_wide ? static_cast<const void*>(&wide[0]) : &narrow[0];
  }
  [[nodiscard]] const void* zero() const {
    return is_wide ? static_cast<const void*>(&wide[1]) : &narrow[1];
  }
};

/// The layout of a tensor of at least four axes. It is made once and set again for each call, and
/// never destroyed: peers keep one per thread.
class Layout {
 public:
  Layout() { check(library().create_tensor(&descriptor_), "a layout"); }
  [[nodiscard]] Descriptor get() const { return descriptor_; }

  void set(DType dtype, const Extents& shape, const Extents& strides) {
    int extents[max_rank] = {};
    int steps[max_rank] = {};
    for (int axis = 0; axis < shape.rank; ++axis) {
      extents[axis] = static_cast<int>(shape[axis]);
      steps[axis] = static_cast<int>(strides[axis]);
    }
    check(library().set_tensor(descriptor_, type_of(dtype), shape.rank, extents, steps),
          "setting a layout");
  }

  /// Returns whether extents and strides are positive numbers of 32 bits, all that cuDNN takes.
  static bool fits(const ConstTensorRef& tensor) {
    constexpr std::int64_t limit = std::numeric_limits<int>::max();
    for (int axis = 0; axis < tensor.rank(); ++axis) {
      const std::int64_t extent = tensor.shape[axis];
      const std::int64_t stride = tensor.strides[axis];
      if (extent < 1 || extent > limit || stride < 1 || stride > limit) return false;
    }
    return true;
  }

 private:
  Descriptor descriptor_ = nullptr;
};

}  // namespace rung::cudnn
