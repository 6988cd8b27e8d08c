// SPDX-License-Identifier: Apache-2.0
// Encodes tensor maps, and looks up driver functions for programs.
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
// Unsigned 32- and 64-bit types map to signed types, for which copies, sums and bit operations are
// the same.
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

/// Mask of the bits of a byte offset that a swizzle changes, indexed by CUtensorMapSwizzle. Each
/// bit belongs to the number of a 16-byte chunk.
constexpr std::uint8_t swizzle_chunks[] = {0, 0x10, 0x30, 0x70};

/// Parameters of tiled and im2col maps. CUDA lists the innermost axis first, the simulator last.
struct Tensor {
  CUtensorMapDataType type;
  cuuint32_t rank;
  void* address;
  const cuuint64_t* shape;
  const cuuint64_t* strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapFloatOOBfill fill;
};
CUresult describe(const CUtensorMap* map, const Tensor& tensor,
                  rung::simt::TensorMapFields& fields) {
  const auto* element = std::find_if(std::begin(elements), std::end(elements),
                                     [&](const Element& one) { return one.type == tensor.type; });
  const auto place = reinterpret_cast<std::uintptr_t>(tensor.address);
  if (map == nullptr || element == std::end(elements) || tensor.rank < 1 || tensor.rank > 5 ||
      place == 0 || place % 16 != 0 || reinterpret_cast<std::uintptr_t>(map) % 64 != 0 ||
      static_cast<std::size_t>(tensor.swizzle) >= std::size(swizzle_chunks)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (tensor.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
      tensor.fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  fields.mark = rung::simt::tensor_map_mark;
  fields.rank = static_cast<std::uint8_t>(tensor.rank);
  fields.element_bytes = element->bytes;
  fields.swizzle_chunks = swizzle_chunks[tensor.swizzle];
  fields.dtype = element->dtype;
  fields.data = static_cast<std::byte*>(tensor.address);
  for (cuuint32_t i = 0; i < tensor.rank; ++i) {
    const cuuint64_t stride = i == 0 ? element->bytes : tensor.strides[i - 1];
    if (tensor.shape[i] < 1 || tensor.shape[i] > cuuint64_t{1} << 32) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (i != 0 && (stride % 16 != 0 || stride >= cuuint64_t{1} << 40)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const cuuint32_t axis = tensor.rank - 1 - i;
    fields.shape[axis] = static_cast<std::int64_t>(tensor.shape[i]);
    fields.stride_bytes[axis] = static_cast<std::int64_t>(stride);
    fields.box[axis] = 1;
  }
  return CUDA_SUCCESS;
}

/// Writes the map. Returns an error unless a row of `elements_a_row` elements is a multiple of 16
/// bytes and, with a swizzle, exactly as wide as the swizzle's pattern.
CUresult encode(CUtensorMap* map, const rung::simt::TensorMapFields& fields,
                cuuint32_t elements_a_row, CUtensorMapSwizzle swizzle) {
  const std::uint32_t row = elements_a_row * fields.element_bytes;
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

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                void* address, const cuuint64_t* shape, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* element_strides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  rung::simt::TensorMapFields fields{};
  const CUresult described =
      describe(map, {type, rank, address, shape, strides, interleave, swizzle, fill}, fields);
  if (described != CUDA_SUCCESS) return described;
  for (cuuint32_t i = 0; i < rank; ++i) {
    if (box[i] < 1 || box[i] > 256) return CUDA_ERROR_INVALID_VALUE;
    if (element_strides[i] != 1) return CUDA_ERROR_NOT_SUPPORTED;
    fields.box[rank - 1 - i] = static_cast<std::uint16_t>(box[i]);
  }
  return encode(map, fields, box[0], swizzle);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                 void* address, const cuuint64_t* shape, const cuuint64_t* strides,
                                 const int* lower, const int* upper, cuuint32_t channels,
                                 cuuint32_t pixels, const cuuint32_t* element_strides,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  rung::simt::TensorMapFields fields{};
  const CUresult described =
      describe(map, {type, rank, address, shape, strides, interleave, swizzle, fill}, fields);
  if (described != CUDA_SUCCESS) return described;
  if (rank < 3 || channels < 1 || channels > 256 || pixels < 1 || pixels > 1024) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // The coordinates of both corners share a field of 32 bits: 16, 8 or 5 bits each.
  const int limit = rank == 3 ? 1 << 15 : rank == 4 ? 1 << 7 : 1 << 4;
  const auto fits = [&](int corner) { return corner >= -limit && corner < limit; };
  for (cuuint32_t i = 0; i < rank; ++i) {
    const bool spatial = i != 0 && i != rank - 1;
    if (element_strides[i] < 1 || element_strides[i] > 8) return CUDA_ERROR_INVALID_VALUE;
    if (!spatial && element_strides[i] != 1) return CUDA_ERROR_NOT_SUPPORTED;
    if (!spatial) continue;
    const cuuint32_t axis = rank - 2 - i;  // index among the spatial axes
    if (!fits(lower[i - 1]) || !fits(upper[i - 1])) return CUDA_ERROR_INVALID_VALUE;
    fields.lower[axis] = static_cast<std::int16_t>(lower[i - 1]);
    fields.upper[axis] = static_cast<std::int16_t>(upper[i - 1]);
    fields.steps[axis] = static_cast<std::uint8_t>(element_strides[i]);
  }
  fields.box[rank - 1] = static_cast<std::uint16_t>(channels);
  fields.pixels = static_cast<std::uint16_t>(pixels);
  return encode(map, fields, channels, swizzle);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  if (symbol == nullptr || function == nullptr) return rung::cuda::remember(cudaErrorInvalidValue);
  const std::string_view name = symbol;
  *function = name == "cuTensorMapEncodeTiled" ? reinterpret_cast<void*>(&cuTensorMapEncodeTiled)
              : name == "cuTensorMapEncodeIm2col"
                  ? reinterpret_cast<void*>(&cuTensorMapEncodeIm2col)
                  : nullptr;
  if (found != nullptr) {
    *found =
        *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  }
  return rung::cuda::remember(cudaSuccess);
}
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* found) {
  return cudaGetDriverEntryPointByVersion(symbol, function, 0, flags, found);
}
