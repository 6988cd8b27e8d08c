// SPDX-License-Identifier: Apache-2.0
// cuBLASLt as an optional library: loaded on first use, its failures converted to Error.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/core/error.hpp"

namespace rung::peer {

struct CublasLt {
  DynamicLibrary library{
      "RUNG_PEER_CUBLASLT",
      {"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.13",
       "/usr/local/cuda/lib64/libcublasLt.so.12"}};
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtGetStatusString) status_string;
  decltype(&cublasLtMatmulDescCreate) create_operation;
  decltype(&cublasLtMatmulDescDestroy) destroy_operation;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation;
  decltype(&cublasLtMatrixLayoutCreate) create_layout;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmul) multiply;

  CublasLt() {
    library.require(create, "cublasLtCreate");
    library.require(version, "cublasLtGetVersion");
    library.require(status_string, "cublasLtGetStatusString");
    library.require(create_operation, "cublasLtMatmulDescCreate");
    library.require(destroy_operation, "cublasLtMatmulDescDestroy");
    library.require(set_operation, "cublasLtMatmulDescSetAttribute");
    library.require(create_layout, "cublasLtMatrixLayoutCreate");
    library.require(destroy_layout, "cublasLtMatrixLayoutDestroy");
    library.require(set_layout, "cublasLtMatrixLayoutSetAttribute");
    library.require(create_preference, "cublasLtMatmulPreferenceCreate");
    library.require(destroy_preference, "cublasLtMatmulPreferenceDestroy");
    library.require(set_preference, "cublasLtMatmulPreferenceSetAttribute");
    library.require(heuristic, "cublasLtMatmulAlgoGetHeuristic");
    library.require(multiply, "cublasLtMatmul");
  }
};

inline CublasLt& cublas() {
  static CublasLt loaded;
  return loaded;
}

inline void check(cublasStatus_t status, const char* doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(ErrorCode::device,
              std::string("cuBLASLt, ") + doing + ": " + cublas().status_string(status));
}
inline void check(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  throw Error(ErrorCode::device, std::string("CUDA, ") + doing + ": " + cudaGetErrorString(status));
}

/// Makes the context's device current until the end of the scope, then restores the caller's.
class ScopedDevice {
 public:
  explicit ScopedDevice(int device) {
    check(cudaGetDevice(&before_), "querying the current device");
    check(cudaSetDevice(device), "making a device current");
  }
  ScopedDevice(const ScopedDevice&) = delete;
  ScopedDevice& operator=(const ScopedDevice&) = delete;
  ~ScopedDevice() { cudaSetDevice(before_); }

 private:
  int before_ = 0;
};

/// Owner of a library object, destroyed by its own function.
template <class Handle>
struct Owned {
  Handle handle = nullptr;
  cublasStatus_t (*destroy)(Handle) = nullptr;
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle != nullptr) destroy(handle);
  }
};

}  // namespace rung::peer
