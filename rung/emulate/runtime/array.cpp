// SPDX-License-Identifier: Apache-2.0
// CUDA arrays and three-dimensional copies.
#include "rung/emulate/runtime/array.hpp"

#include <algorithm>
#include <cstring>

#include "rung/emulate/runtime/memory.hpp"
#include "rung/emulate/runtime/stream.hpp"
#include "rung/simt/limits.hpp"
#include "rung/simt/record.hpp"

namespace rung::cuda {
namespace {

cudaError_t copy_array(cudaArray* array, std::size_t x, std::size_t y, void* memory,
                       std::size_t pitch, std::size_t width, std::size_t height, bool to_array,
                       cudaMemcpyKind kind, cudaStream_t stream) {
  if (array == nullptr || x + width > array->row_bytes() ||
      y + height > array->rows() * array->slices()) {
    return remember(cudaErrorInvalidValue);
  }
  char* there = array->data.get() + y * array->row_bytes() + x;
  char* here = static_cast<char*>(memory);
  const std::size_t row = array->row_bytes();
  const Rows rows = to_array ? Rows{there, here, width, height, 1, row, pitch, 0, 0}
                             : Rows{here, there, width, height, 1, pitch, row, 0, 0};
  (void)kind;  // the pointers determine the direction
  return submit(stream, cudaGraphNodeTypeMemcpy,
                [=] { return copy_rows(rows, cudaMemcpyDefault); });
}

/// Source or destination of a 3D copy: its start, and the strides of rows and slices.
struct End {
  char* begin;
  std::size_t pitch, slice;
};
End end_of(cudaArray* array, const cudaPitchedPtr& memory, const cudaPos& at, std::size_t unit) {
  if (array != nullptr) {
    const std::size_t pitch = array->row_bytes(), slice = pitch * array->rows();
    return {array->data.get() + at.x * array->element_bytes + at.y * pitch + at.z * slice, pitch,
            slice};
  }
  const std::size_t slice = memory.pitch * memory.ysize;
  return {static_cast<char*>(memory.ptr) + at.x * unit + at.y * memory.pitch + at.z * slice,
          memory.pitch, slice};
}

}  // namespace

std::size_t element_bytes(const cudaChannelFormatDesc& format) {
  return static_cast<std::size_t>(format.x + format.y + format.z + format.w) / 8;
}

std::unique_ptr<cudaArray> make_array(const cudaChannelFormatDesc& format, cudaExtent extent,
                                      unsigned flags) {
  auto made = std::make_unique<cudaArray>();
  made->format = format;
  made->extent = extent;
  made->flags = flags;
  made->element_bytes = element_bytes(format);
  const std::size_t bytes = made->row_bytes() * made->rows() * made->slices();
  made->data = std::make_unique<char[]>(bytes);
  std::memset(made->data.get(), simt::poison, bytes);
  simt::record::register_memory(
      {.begin = made->data.get(), .bytes = bytes, .initialized = true, .name = "cudaMallocArray"});
  return made;
}

cudaError_t copy_3d(const cudaMemcpy3DParms& given) {
  if ((given.srcArray == nullptr && given.srcPtr.ptr == nullptr) ||
      (given.dstArray == nullptr && given.dstPtr.ptr == nullptr)) {
    return cudaErrorInvalidValue;
  }
  // Widths are in elements if source or destination is an array, else in bytes.
  const cudaArray* array = given.srcArray != nullptr ? given.srcArray : given.dstArray;
  const std::size_t unit = array != nullptr ? array->element_bytes : 1;
  const End from = end_of(given.srcArray, given.srcPtr, given.srcPos, 1);
  const End to = end_of(given.dstArray, given.dstPtr, given.dstPos, 1);
  const cudaExtent& extent = given.extent;
  const bool of_arrays = array != nullptr;
  return copy_rows({to.begin, from.begin, extent.width * unit, extent.height, extent.depth,
                    to.pitch, from.pitch, to.slice, from.slice},
                   of_arrays ? cudaMemcpyDefault : given.kind);
}

}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                            cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format,
                              cudaExtent extent, unsigned int flags) {
  if (array == nullptr || format == nullptr || extent.width == 0) {
    return remember(cudaErrorInvalidValue);
  }
  *array = make_array(*format, extent, flags).release();
  return remember(cudaSuccess);
}
cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format,
                            std::size_t width, std::size_t height, unsigned int flags) {
  return cudaMalloc3DArray(array, format, {width, height, 0}, flags);
}
cudaError_t cudaFreeArray(cudaArray_t array) {
  if (array != nullptr) rung::simt::record::unregister_memory(array->data.get());
  delete array;
  return remember(cudaSuccess);
}
cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array,
                                     const cudaChannelFormatDesc* format, cudaExtent extent,
                                     unsigned int levels, unsigned int flags) {
  if (array == nullptr || format == nullptr || extent.width == 0) {
    return remember(cudaErrorInvalidValue);
  }
  auto made = std::make_unique<cudaMipmappedArray>();
  const bool layered = (flags & (cudaArrayLayered | cudaArrayCubemap)) != 0;
  while (made->levels.size() < std::max(levels, 1U)) {
    made->levels.push_back(make_array(*format, extent, flags));
    const bool smallest = extent.width <= 1 && extent.height <= 1 && (layered || extent.depth <= 1);
    if (smallest) break;
    for (std::size_t* side : {&extent.width, &extent.height, &extent.depth}) {
      if (*side > 1 && !(layered && side == &extent.depth)) *side /= 2;
    }
  }
  *array = made.release();
  return remember(cudaSuccess);
}
cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* level, cudaMipmappedArray_const_t array,
                                       unsigned int number) {
  if (level == nullptr || array == nullptr || number >= array->levels.size()) {
    return remember(cudaErrorInvalidValue);
  }
  *level = array->levels[number].get();
  return remember(cudaSuccess);
}
cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
  if (array == nullptr) return remember(cudaSuccess);
  for (const auto& one : array->levels) {
    rung::simt::record::unregister_memory(one->data.get());
  }
  delete array;
  return remember(cudaSuccess);
}
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned int* flags,
                             cudaArray_t array) {
  if (array == nullptr) return remember(cudaErrorInvalidValue);
  if (format != nullptr) *format = array->format;
  if (extent != nullptr) *extent = array->extent;
  if (flags != nullptr) *flags = array->flags;
  return remember(cudaSuccess);
}
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array) {
  if (format == nullptr || array == nullptr) return remember(cudaErrorInvalidValue);
  *format = array->format;
  return remember(cudaSuccess);
}
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                                     std::size_t pitch, std::size_t width, std::size_t height,
                                     cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_array(to, x, y, const_cast<void*>(from), pitch, width, height, true, kind, stream);
}
cudaError_t cudaMemcpy2DToArray(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                                std::size_t pitch, std::size_t width, std::size_t height,
                                cudaMemcpyKind kind) {
  return copy_array(to, x, y, const_cast<void*>(from), pitch, width, height, true, kind,
                    synchronous());
}
cudaError_t cudaMemcpy2DFromArray(void* to, std::size_t pitch, cudaArray_const_t from,
                                  std::size_t x, std::size_t y, std::size_t width,
                                  std::size_t height, cudaMemcpyKind kind) {
  return copy_array(const_cast<cudaArray*>(from), x, y, to, pitch, width, height, false, kind,
                    synchronous());
}
cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, std::size_t to_x, std::size_t to_y,
                                     cudaArray_const_t from, std::size_t x, std::size_t y,
                                     std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  if (from == nullptr || x + width > from->row_bytes() || y + height > from->rows()) {
    return remember(cudaErrorInvalidValue);
  }
  return copy_array(to, to_x, to_y, from->data.get() + y * from->row_bytes() + x, from->row_bytes(),
                    width, height, true, kind, synchronous());
}
cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, std::size_t x, std::size_t y,
                                std::size_t bytes, cudaMemcpyKind kind) {
  if (from == nullptr) return remember(cudaErrorInvalidValue);
  const std::size_t row = from->row_bytes();
  if (x == 0 && bytes % row == 0) {
    return cudaMemcpy2DFromArray(to, row, from, 0, y, row, bytes / row, kind);
  }
  return cudaMemcpy2DFromArray(to, bytes, from, x, y, bytes, 1, kind);
}
cudaError_t cudaMemcpyToArray(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                              std::size_t bytes, cudaMemcpyKind kind) {
  if (to == nullptr) return remember(cudaErrorInvalidValue);
  const std::size_t row = to->row_bytes();
  if (x == 0 && bytes % row == 0) {
    return cudaMemcpy2DToArray(to, 0, y, from, row, row, bytes / row, kind);
  }
  return cudaMemcpy2DToArray(to, x, y, from, bytes, bytes, 1, kind);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* given, cudaStream_t stream) {
  if (given == nullptr) return remember(cudaErrorInvalidValue);
  return submit(stream, cudaGraphNodeTypeMemcpy, [copy = *given] { return copy_3d(copy); });
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* given) {
  return cudaMemcpy3DAsync(given, synchronous());
}
