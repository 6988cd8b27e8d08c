// SPDX-License-Identifier: Apache-2.0
// Tensor maps as the driver encodes them, and how programs find its functions.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "rung/emulate/runtime/api.hpp"
#include "rung/simt/tensor_copy.hpp"

#pragma GCC visibility push(default)
#include "cuda.h"
#pragma GCC visibility pop

namespace {

using rung::DType;

struct Element {
  CUtensorMapDataType type;
  DType dtype;
  std::uint8_t bytes;
};
// Unsigned words go by the signed type: copies, sums and bits are the same.
constexpr Element elements[] = {{CU_TENSOR_MAP_DATA_TYPE_UINT8, DType::u8, 1},
                                {CU_TENSOR_MAP_DATA_TYPE_UINT16, DType::u16, 2},
                                {CU_TENSOR_MAP_DATA_TYPE_UINT32, DType::i32, 4},
                                {CU_TENSOR_MAP_DATA_TYPE_INT32, DType::i32, 4},
                                {CU_TENSOR_MAP_DATA_TYPE_UINT64, DType::i64, 8},
                                {CU_TENSOR_MAP_DATA_TYPE_INT64, DType::i64, 8},
                                {CU_TENSOR_MAP_DATA_TYPE_FLOAT16, DType::f16, 2},
                                {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, DType::f32, 4},
                                {CU_TENSOR_MAP_DATA_TYPE_FLOAT64, DType::f64, 8},
                                {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, DType::bf16, 2},
                                {CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, DType::f32, 4},
                                {CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, DType::f32, 4},
                                {CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, DType::f32, 4}};

/// What the copy engine permutes: bits of the number of a chunk of 16 bytes, in place.
constexpr std::uint8_t swizzle_chunks[] = {0, 0x10, 0x30, 0x70};

bool valid_axis(cuuint64_t extent, cuuint32_t box) {
  return extent >= 1 && extent <= cuuint64_t{1} << 32 && box >= 1 && box <= 256;
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                void* address, const cuuint64_t* shape, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* element_strides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  const auto* element = std::find_if(std::begin(elements), std::end(elements),
                                     [&](const Element& one) { return one.type == type; });
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  if (map == nullptr || element == std::end(elements) || rank < 1 || rank > 5 ||
      address == nullptr || place % 16 != 0 || reinterpret_cast<std::uintptr_t>(map) % 64 != 0 ||
      static_cast<std::size_t>(swizzle) >= std::size(swizzle_chunks)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  rung::simt::TensorMapFields fields{};
  fields.mark = rung::simt::tensor_map_mark;
  fields.rank = static_cast<std::uint8_t>(rank);
  fields.element_bytes = element->bytes;
  fields.swizzle_chunks = swizzle_chunks[swizzle];
  fields.dtype = element->dtype;
  fields.data = static_cast<std::byte*>(address);
  for (cuuint32_t i = 0; i < rank; ++i) {
    const cuuint64_t stride = i == 0 ? element->bytes : strides[i - 1];
    if (!valid_axis(shape[i], box[i])) return CUDA_ERROR_INVALID_VALUE;
    if (i != 0 && (stride % 16 != 0 || stride >= cuuint64_t{1} << 40)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (element_strides[i] != 1) return CUDA_ERROR_NOT_SUPPORTED;
    const cuuint32_t axis = rank - 1 - i;  // the simulator has the innermost last
    fields.shape[axis] = static_cast<std::int64_t>(shape[i]);
    fields.stride_bytes[axis] = static_cast<std::int64_t>(stride);
    fields.box[axis] = static_cast<std::uint16_t>(box[i]);
  }
  const std::uint32_t row = box[0] * element->bytes;
  const std::uint32_t pattern = 16u << static_cast<unsigned>(swizzle);
  if (row % 16 != 0) return CUDA_ERROR_INVALID_VALUE;
  if (swizzle != CU_TENSOR_MAP_SWIZZLE_NONE && row != pattern) {
    return row > pattern ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
  }
  *map = {};
  static_assert(sizeof(fields) <= sizeof(*map));
  std::memcpy(map->opaque, &fields, sizeof(fields));
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  if (symbol == nullptr || function == nullptr) return rung::cuda::remember(cudaErrorInvalidValue);
  const bool known = std::string_view(symbol) == "cuTensorMapEncodeTiled";
  *function = known ? reinterpret_cast<void*>(&cuTensorMapEncodeTiled) : nullptr;
  if (found != nullptr) {
    *found = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  }
  return rung::cuda::remember(cudaSuccess);
}
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* found) {
  return cudaGetDriverEntryPointByVersion(symbol, function, 0, flags, found);
}
