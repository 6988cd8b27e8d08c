// SPDX-License-Identifier: Apache-2.0
// TensorMap: descriptor of a tensor in global memory for TMA (Tensor Memory Accelerator, compute
// capability 9.0): address, shape, strides, and the box of elements that one copy moves. Made on
// the host from a View, passed to the kernel by value:
//   const TensorMap map = make_tensor_map(x, {64, 32}, Swizzle::bytes_128);  // x: View<const T, 2>
//   __global__ void kernel(const __grid_constant__ TensorMap map);
//   ptx::tensor_load(tile, map, {row, column}, barrier);                   // ptx/tensor_copy.hpp
//
// Boxes and coordinates are in the View's order, rows before columns. A box may extend beyond any
// edge: elements outside the tensor load as zero and are not stored, so that a kernel needs no edge
// handling. Measured on an H200: the last coordinate must be a multiple of 16 bytes, and a store
// must have no negative coordinate (else the kernel ends with an error); a store writes the 16-byte
// chunk that contains the end of a row in full, up to 15 bytes beyond the row. In shared memory a
// box is dense, its last axis fastest, except for the swizzle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rung/core/dtype.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/view.hpp"
#include "rung/device/target.hpp"

#if !defined(__CUDACC__)
#include <cstring>

#include "rung/simt/tensor_copy.hpp"
#endif

namespace rung::inline RUNG_TARGET {

/// Permutation of a box's 16-byte chunks in shared memory, which avoids bank conflicts on columns.
/// Except for `none`, the last axis of the box must have exactly 32, 64 or 128 bytes.
enum class Swizzle : std::uint8_t { none, bytes_32, bytes_64, bytes_128 };

/// Returns the bytes after which a swizzle's pattern repeats: the alignment of a box in shared
/// memory.
RUNG_HD constexpr int swizzle_period(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::none:
      return 128;  // required by every tensor copy
    case Swizzle::bytes_32:
      return 256;
    case Swizzle::bytes_64:
      return 512;
    case Swizzle::bytes_128:
      break;
  }
  return 1024;
}

/// Returns the swizzled offset of the byte at `offset` of a dense box: the index of the 16-byte
/// chunk (bits 4 to 6, or fewer for narrower swizzles) is xored with the index of the 128-byte line
/// (bits 7 to 9). The base is aligned to swizzle_period().
template <Swizzle S>
RUNG_HD constexpr int swizzled(int offset) {
  if constexpr (S == Swizzle::none) return offset;
  constexpr int chunks = S == Swizzle::bytes_32 ? 0x10 : S == Swizzle::bytes_64 ? 0x30 : 0x70;
  return offset ^ ((offset >> 3) & chunks);
}

/// Encoded tensor map; the encoding is opaque and differs between the GPU and the simulator.
struct alignas(128) TensorMap {
  unsigned char opaque[128];
};

/// Window of an im2col map (ptx/im2col.hpp); spatial axes in the order of a View.
struct Im2colWindow {
  int lower[3] = {};
  int upper[3] = {};
  int steps[3] = {1, 1, 1};
  int channels = 0;
  int pixels = 0;  // 0: not an im2col map
};

/// Description of a tensor map. Axes as in a View; strides in elements.
struct TensorMapSource {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;  // 1 to 5
  std::int64_t shape[5] = {};
  std::int64_t strides[5] = {};
  int box[5] = {};
  Swizzle swizzle = Swizzle::none;
  bool rounds_to_tf32 = false;  // loads round f32 elements to tf32
  Im2colWindow window;
};

template <class T, int N>
TensorMapSource tensor_map_source(const View<T, N>& view, const int (&box)[N], Swizzle swizzle) {
  static_assert(N >= 1 && N <= 5, "the copy engine knows 1 to 5 axes");
  TensorMapSource source;
  source.data = view.data;
  source.dtype = dtype_of<T>;
  source.rank = N;
  source.swizzle = swizzle;
  for (int axis = 0; axis < N; ++axis) {
    source.shape[axis] = view.shape[axis];
    source.strides[axis] = view.strides[axis];
    source.box[axis] = box[axis];
  }
  return source;
}

/// Returns whether TMA supports the tensor and box; for a rung's `supports`.
inline Support tensor_map_support(const TensorMapSource& source) {
  const std::int64_t element = static_cast<std::int64_t>(size_of(source.dtype));
  const int last = source.rank - 1;
  if (source.dtype == DType::e4m3 || source.dtype == DType::e5m2) {
    return unsupported("tensor maps are not made for 8-bit floats");
  }
  if (reinterpret_cast<std::uintptr_t>(source.data) % 16 != 0) {
    return unsupported("a tensor map needs data aligned to 16 bytes");
  }
  if (source.shape[last] > 1 && source.strides[last] != 1) {
    return unsupported("a tensor map needs its last axis contiguous");
  }
  for (int axis = 0; axis <= last; ++axis) {
    if (source.shape[axis] < 1 || source.shape[axis] > (std::int64_t{1} << 32)) {
      return unsupported("a tensor map needs extents from 1 to 2^32");
    }
    if (source.box[axis] < 1 || source.box[axis] > 256) {
      return unsupported("a tensor map's box has extents from 1 to 256");
    }
    if (axis == last || source.shape[axis] == 1) continue;
    const std::int64_t stride = source.strides[axis];
    if (stride <= 0 || stride >= (std::int64_t{1} << 40) / element || stride * element % 16 != 0) {
      return unsupported(
          "a tensor map needs positive strides of a multiple of 16 bytes, below 2^40");
    }
  }
  const std::int64_t row = source.box[last] * element;
  if (row % 16 != 0) {
    return unsupported("the last axis of a tensor map's box is a multiple of 16 bytes");
  }
  if (source.swizzle != Swizzle::none && row != swizzle_period(source.swizzle) / 8) {
    return unsupported("the last axis of a swizzled box has 32, 64 or 128 bytes, as the swizzle");
  }
  return supported;
}
template <class T, int N>
Support tensor_map_support(const View<T, N>& view, const int (&box)[N], Swizzle swizzle) {
  return tensor_map_support(tensor_map_source(view, box, swizzle));
}

namespace device_detail {

/// Returns the stride of `axis` in bytes. The stride of an axis of extent 1, arbitrary in a View,
/// is replaced by one that TMA accepts.
inline std::int64_t tensor_map_stride(const TensorMapSource& source, int axis) {
  const std::int64_t element = static_cast<std::int64_t>(size_of(source.dtype));
  return source.shape[axis] == 1 ? 16 : source.strides[axis] * element;
}

#if defined(__CUDACC__)
/// Encodes the map by the driver; defined in cuda_tensor_map.cu.
TensorMap encode_tensor_map(const TensorMapSource& source);
#else
inline TensorMap encode_tensor_map(const TensorMapSource& source) {
  simt::TensorMapFields fields{};
  fields.mark = simt::tensor_map_mark;
  fields.rank = static_cast<std::uint8_t>(source.rank);
  fields.element_bytes = static_cast<std::uint8_t>(size_of(source.dtype));
  fields.swizzle_chunks = source.swizzle == Swizzle::none
                              ? std::uint8_t{0}
                              : static_cast<std::uint8_t>(swizzle_period(source.swizzle) / 8 - 16);
  fields.dtype = source.dtype;
  fields.rounds_to_tf32 = source.rounds_to_tf32;
  fields.data = static_cast<std::byte*>(const_cast<void*>(source.data));
  fields.pixels = static_cast<std::uint16_t>(source.window.pixels);
  for (int axis = 0; axis < 3; ++axis) {
    fields.lower[axis] = static_cast<std::int16_t>(source.window.lower[axis]);
    fields.upper[axis] = static_cast<std::int16_t>(source.window.upper[axis]);
    fields.steps[axis] = static_cast<std::uint8_t>(source.window.steps[axis]);
  }
  for (int axis = 0; axis < source.rank; ++axis) {
    fields.shape[axis] = source.shape[axis];
    fields.stride_bytes[axis] =
        axis == source.rank - 1 ? fields.element_bytes : tensor_map_stride(source, axis);
    fields.box[axis] = static_cast<std::uint16_t>(source.box[axis]);
  }
  TensorMap map{};
  static_assert(sizeof(fields) <= sizeof(map));
  std::memcpy(map.opaque, &fields, sizeof(fields));
  return map;
}
#endif

}  // namespace device_detail

/// Makes a tensor map of a View. Throws Error(invalid_argument) with the reason if
/// tensor_map_support() rejects it. `rounds_to_tf32` makes loads round f32 elements to tf32, which
/// tensor cores would truncate.
template <class T, int N>
TensorMap make_tensor_map(const View<T, N>& view, const int (&box)[N],
                          Swizzle swizzle = Swizzle::none, bool rounds_to_tf32 = false) {
  TensorMapSource source = tensor_map_source(view, box, swizzle);
  source.rounds_to_tf32 = rounds_to_tf32 && source.dtype == DType::f32;
  if (const Support support = tensor_map_support(source); !support) {
    throw Error(ErrorCode::invalid_argument, std::string("make_tensor_map: ") + support.why);
  }
  return device_detail::encode_tensor_map(source);
}

}  // namespace rung::inline RUNG_TARGET
