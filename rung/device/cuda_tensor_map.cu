// SPDX-License-Identifier: Apache-2.0
// Tensor maps for GPUs, encoded by the driver. The driver's function is looked up at run time, so
// that librung does not link to the driver's library.
#include <cuda.h>

#include <cstring>
#include <string>

#include "rung/device/cuda_check.hpp"
#include "rung/device/tensor_map.hpp"

namespace rung::inline RUNG_TARGET {
namespace {

template <class Function>
Function find_in_driver(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  // These functions have kept their signatures since CUDA 12.0, which introduced them.
  const std::string what = std::string("looking for ") + name + " in the NVIDIA driver";
  check_cuda(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found),
             what);
  if (found != cudaDriverEntryPointSuccess || function == nullptr) {
    throw Error(ErrorCode::unsupported, std::string("the NVIDIA driver has no ") + name);
  }
  return reinterpret_cast<Function>(function);
}

CUtensorMapDataType driver_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::f64:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    case DType::f16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::i32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case DType::i64:
      return CU_TENSOR_MAP_DATA_TYPE_INT64;
    case DType::u16:
      return CU_TENSOR_MAP_DATA_TYPE_UINT16;
    default:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  }
}

CUtensorMapSwizzle driver_swizzle(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::none:
      return CU_TENSOR_MAP_SWIZZLE_NONE;
    case Swizzle::bytes_32:
      return CU_TENSOR_MAP_SWIZZLE_32B;
    case Swizzle::bytes_64:
      return CU_TENSOR_MAP_SWIZZLE_64B;
    case Swizzle::bytes_128:
      break;
  }
  return CU_TENSOR_MAP_SWIZZLE_128B;
}

}  // namespace

namespace device_detail {

TensorMap encode_tensor_map(const TensorMapSource& source) {
  // The driver numbers axes from the innermost, whose stride is implied.
  cuuint64_t shape[5] = {}, strides[5] = {};
  cuuint32_t box[5] = {}, steps[5] = {};
  for (int axis = 0; axis < source.rank; ++axis) {
    const int from = source.rank - 1 - axis;
    shape[axis] = static_cast<cuuint64_t>(source.shape[from]);
    box[axis] = static_cast<cuuint32_t>(source.box[from]);
    const bool spatial = source.window.pixels != 0 && axis > 0 && axis + 1 < source.rank;
    steps[axis] = spatial ? static_cast<cuuint32_t>(source.window.steps[from - 1]) : 1;
    if (axis > 0) strides[axis - 1] = static_cast<cuuint64_t>(tensor_map_stride(source, from));
  }
  CUtensorMap encoded;
  const auto rank = static_cast<cuuint32_t>(source.rank);
  void* const data = const_cast<void*>(source.data);
  CUresult status = CUDA_SUCCESS;
  if (source.window.pixels == 0) {
    static const auto encode =
        find_in_driver<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
    const CUtensorMapDataType type =
        source.rounds_to_tf32 ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 : driver_type(source.dtype);
    status = encode(&encoded, type, rank, data, shape, strides, box, steps,
                    CU_TENSOR_MAP_INTERLEAVE_NONE, driver_swizzle(source.swizzle),
                    CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  } else {
    static const auto encode =
        find_in_driver<decltype(&cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col");
    int lower[3] = {}, upper[3] = {};
    for (int axis = 0; axis < source.rank - 2; ++axis) {
      lower[axis] = source.window.lower[source.rank - 3 - axis];
      upper[axis] = source.window.upper[source.rank - 3 - axis];
    }
    status = encode(&encoded, driver_type(source.dtype), rank, data, shape, strides, lower, upper,
                    static_cast<cuuint32_t>(source.window.channels),
                    static_cast<cuuint32_t>(source.window.pixels), steps,
                    CU_TENSOR_MAP_INTERLEAVE_NONE, driver_swizzle(source.swizzle),
                    CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }
  if (status != CUDA_SUCCESS) {
    throw Error(ErrorCode::device, "encoding a tensor map failed with CUresult " +
                                       std::to_string(static_cast<int>(status)));
  }
  TensorMap map;
  static_assert(sizeof(map) == sizeof(encoded) && alignof(TensorMap) >= alignof(CUtensorMap));
  std::memcpy(map.opaque, &encoded, sizeof(map));
  return map;
}

}  // namespace device_detail
}  // namespace rung::inline RUNG_TARGET
