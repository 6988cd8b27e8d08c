// SPDX-License-Identifier: Apache-2.0
// cuDNN as an optional library: loaded on first use, its failures converted to Error. The parts of
// its C interface that peers use are declared here, so that its development package is not needed.
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

/// A thread's cuDNN handle; a call on another device replaces it. Handles are never destroyed: they
/// live as long as the process, like cuDNN's own state.
struct Session {
  int device = -1;
  Handle handle = nullptr;

  /// Makes the context's device current and sets the handle's stream to the context's.
  void open(const Context& context) {
    if (device != context.device().index) {
      device = context.device().index;
      if (cudaSetDevice(device) != cudaSuccess) throw Error(ErrorCode::device, "cudaSetDevice");
      check(library().create(&handle), "cudnnCreate");
    }
    check(library().set_stream(handle, static_cast<cudaStream_t>(context.stream())), "its stream");
  }
};

/// Returns the cudnnDataType_t, or -1 if cuDNN has none.
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

/// Factors 1 and 0 in the type that cuDNN reads: double for f64, float for all other types.
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

/// Descriptor of a tensor of at least four axes. It is created once, set again for each call, and
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

  /// Returns whether extents and strides are positive 32-bit numbers, as cuDNN requires.
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
