// SPDX-License-Identifier: Apache-2.0
// transpose / cublas: the peer cuBLAS, cublasSgeam and cublasDgeam: C = 1 A' + 0 B.
//
// cuBLAS is column-major: it sees x, rows x columns with contiguous rows, as a columns x rows
// matrix A whose leading dimension is x's row stride, and y as a rows x columns matrix.
//
// Limits   f32 and f64 as single elements; 32-bit sizes. It multiplies by 1: signaling NaNs become
//          quiet.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "rung/core/dynamic_library.hpp"
#include "rung/ops/transpose/peers/matrices.hpp"

namespace rung {
namespace {

using transpose_peer::Matrix;

struct Cublas {
  DynamicLibrary library{
      "RUNG_PEER_CUBLAS",
      {"libcublas.so.13", "libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so.13",
       "/usr/local/cuda/lib64/libcublas.so.12"}};
  // The exported symbols, for which the header's names are macros.
  decltype(&cublasCreate_v2) create;
  decltype(&cublasSetStream_v2) set_stream;
  decltype(&cublasGetVersion_v2) version;
  decltype(&cublasGetStatusString) status_string;
  decltype(&cublasSgeam) sgeam;
  decltype(&cublasDgeam) dgeam;

  Cublas() {
    library.require(create, "cublasCreate_v2");
    library.require(set_stream, "cublasSetStream_v2");
    library.require(version, "cublasGetVersion_v2");
    library.require(status_string, "cublasGetStatusString");
    library.require(sgeam, "cublasSgeam");
    library.require(dgeam, "cublasDgeam");
  }
};

Cublas& cublas() {
  static Cublas loaded;
  return loaded;
}

void check(cublasStatus_t status, const char* doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(ErrorCode::device,
              std::string("cuBLAS, ") + doing + ": " + cublas().status_string(status));
}
void check(cudaError_t status, const char* doing) {
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

std::mutex handles_mutex;

/// Returns the device's handle. Handles are never destroyed: the library owns device memory that
/// must not be freed after the driver has shut down.
cublasHandle_t handle_of(int device) {
  static std::vector<cublasHandle_t> handles;
  const auto index = static_cast<std::size_t>(device);
  if (handles.size() <= index) handles.resize(index + 1, nullptr);
  if (handles[index] == nullptr) check(cublas().create(&handles[index]), "creating a handle");
  return handles[index];
}

Support present() { return cublas().library.present(); }

std::string about() {
  const ScopedDevice current(0);
  const std::scoped_lock lock(handles_mutex);
  int version = 0;  // 130100 is 13.1.0
  check(cublas().version(handle_of(0), &version), "querying the version");
  return "cuBLAS " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
         "." + std::to_string(version % 100) + ", geam";
}

Support supports(const Transpose::Args& args, const Context&) {
  const DType dtype = args.x.dtype;
  if (dtype != DType::f32 && dtype != DType::f64) return unsupported("geam has f32 and f64");
  if (args.moves.empty()) return supported;
  if (const Support support = transpose_peer::supports_matrices(args); !support) return support;
  if (args.moves.element_bytes != static_cast<int>(size_of(dtype))) {
    return unsupported("geam moves single elements");
  }
  const Matrix matrix = transpose_peer::first_matrix(args, args.moves);
  constexpr std::int64_t limit = 0x7fffffff;
  if (std::max({matrix.rows, matrix.columns, matrix.x_row, matrix.y_row}) > limit) {
    return unsupported("a size or stride exceeds its 32-bit integers");
  }
  return supported;
}

template <class T, class Geam>
void transpose_all(const Transpose::Args& args, cublasHandle_t handle, Geam geam) {
  const T one = 1;
  const T zero = 0;
  transpose_peer::for_each_matrix(args, [&](const Matrix& matrix) {
    const int rows = static_cast<int>(matrix.rows);
    const int columns = static_cast<int>(matrix.columns);
    const int x_row = static_cast<int>(matrix.x_row);
    const int y_row = static_cast<int>(matrix.y_row);
    T* y = reinterpret_cast<T*>(matrix.y);
    // With beta = 0 cuBLAS does not read B, which may then be C itself.
    check(geam(handle, CUBLAS_OP_T, CUBLAS_OP_N, rows, columns, &one,
               reinterpret_cast<const T*>(matrix.x), x_row, &zero, y, y_row, y, y_row),
          "transposing");
  });
}

void run(const Transpose::Args& args, Context& context) {
  if (args.moves.empty()) return;
  const ScopedDevice current(context.device().index);
  const std::scoped_lock lock(handles_mutex);
  cublasHandle_t handle = handle_of(context.device().index);
  check(cublas().set_stream(handle, static_cast<cudaStream_t>(context.stream())),
        "setting the stream");
  if (args.x.dtype == DType::f32) {
    transpose_all<float>(args, handle, cublas().sgeam);
  } else {
    transpose_all<double>(args, handle, cublas().dgeam);
  }
}

const Rung<Transpose> self{{.name = "cublas",
                            .backend = Backend::cuda,
                            .peer = true,
                            .about = about,
                            .present = present,
                            .supports = supports,
                            .run = run}};

}  // namespace
}  // namespace rung
