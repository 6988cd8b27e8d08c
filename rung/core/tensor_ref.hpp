// SPDX-License-Identifier: Apache-2.0
// TensorRef: pointer, type, shape, strides and place, with the element type erased; it is what
// public functions take. It owns nothing (tensor.hpp has what does) and is quick to read.
//
// Shapes may hold zeros; strides count elements, may be zero (broadcast) and in any order.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "rung/core/dtype.hpp"
#include "rung/core/export.hpp"
#include "rung/core/view.hpp"

namespace rung {

enum class Backend : std::uint8_t { cpu, cuda, simt };
RUNG_API const char* to_string(Backend backend) noexcept;
/// Reads "cpu", "cuda" or "simt"; throws Error(invalid_argument).
RUNG_API Backend parse_backend(std::string_view text);

/// Where memory lives. The simulated GPU's memory is host memory: cpu and simt may share tensors.
struct Device {
  Backend backend = Backend::cpu;
  int index = 0;
  bool operator==(const Device&) const = default;
};

inline constexpr int max_rank = 8;

/// A shape or a list of strides: up to max_rank numbers, by value.
struct RUNG_API Extents {
  int rank = 0;
  std::int64_t at[max_rank] = {};

  Extents() = default;
  Extents(std::initializer_list<std::int64_t> list)
      : Extents(std::span<const std::int64_t>(list.begin(), list.size())) {}
  explicit Extents(std::span<const std::int64_t> list);

  std::int64_t& operator[](int axis) { return at[axis]; }
  std::int64_t operator[](int axis) const { return at[axis]; }
  bool operator==(const Extents& other) const {
    for (int axis = 0; axis < rank; ++axis) {
      if (at[axis] != other.at[axis]) return false;
    }
    return rank == other.rank;
  }
  /// The product; throws Error when it does not fit 63 bits or an extent is negative.
  [[nodiscard]] std::int64_t product() const;
  /// Strides of a C-contiguous tensor of this shape.
  [[nodiscard]] Extents contiguous_strides() const;
};
/// "2x3x4", as problems are spelled.
RUNG_API std::string to_string(const Extents& extents);

/// Void is void or const void: a reference through which the elements may be written, or not.
template <class Void>
struct BasicTensorRef {
  Void* data = nullptr;
  DType dtype = DType::f32;
  Device device;
  Extents shape;
  Extents strides;

  BasicTensorRef() = default;
  BasicTensorRef(Void* data, DType dtype, const Extents& shape, const Extents& strides,
                 Device device = {})
      : data(data), dtype(dtype), device(device), shape(shape), strides(strides) {}
  BasicTensorRef(Void* data, DType dtype, const Extents& shape, Device device = {})
      : BasicTensorRef(data, dtype, shape, shape.contiguous_strides(), device) {}

  /// A view converts by itself: gemm(ctx, a.view, ...).
  template <class T, int N>
    requires(std::is_const_v<Void> || !std::is_const_v<T>)
  BasicTensorRef(const View<T, N>& view, Device device = {})  // NOLINT(google-explicit-constructor)
      : data(view.data),
        dtype(dtype_of<T>),
        device(device),
        shape(std::span(view.shape, N)),
        strides(std::span(view.strides, N)) {}

  /// Writable to read-only.
  template <class Other>
    requires(std::is_const_v<Void> && !std::is_const_v<Other>)
  BasicTensorRef(const BasicTensorRef<Other>& other)  // NOLINT(google-explicit-constructor)
      : data(other.data),
        dtype(other.dtype),
        device(other.device),
        shape(other.shape),
        strides(other.strides) {}

  [[nodiscard]] int rank() const { return shape.rank; }
  [[nodiscard]] std::int64_t size() const { return shape.product(); }
  [[nodiscard]] bool empty() const {
    for (int axis = 0; axis < shape.rank; ++axis) {
      if (shape[axis] == 0) return true;
    }
    return false;
  }

  /// The typed view; T must be the dtype and N the rank (checked by the operator's validate).
  template <class T, int N>
  [[nodiscard]] View<T, N> view() const {
    View<T, N> typed;
    typed.data = static_cast<T*>(data);
    for (int axis = 0; axis < N; ++axis) {
      typed.shape[axis] = shape[axis];
      typed.strides[axis] = strides[axis];
    }
    return typed;
  }
};
using TensorRef = BasicTensorRef<void>;
using ConstTensorRef = BasicTensorRef<const void>;

/// The half-open range of bytes that the elements of a tensor span; {0, 0} when it is empty.
struct ByteRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  [[nodiscard]] bool overlaps(const ByteRange& other) const {
    return begin < other.end && other.begin < end;
  }
};
RUNG_API ByteRange byte_range(const ConstTensorRef& tensor);

/// Whether two elements of different index may share memory (so that writing would be ambiguous).
/// Conservative only for exotic strides: rows, columns, slices and permutations are decided
/// exactly.
RUNG_API bool self_overlaps(const ConstTensorRef& tensor);

/// Same type, shape, strides, place and alignment: what decides which rung may serve a call.
/// Data pointers may differ as long as their alignment up to 16 bytes agrees.
inline bool same_layout(const ConstTensorRef& a, const ConstTensorRef& b) {
  constexpr std::uintptr_t vector_mask = 15;
  return a.dtype == b.dtype && a.device == b.device && a.shape == b.shape &&
         a.strides == b.strides && (a.data == nullptr) == (b.data == nullptr) &&
         ((reinterpret_cast<std::uintptr_t>(a.data) ^ reinterpret_cast<std::uintptr_t>(b.data)) &
          vector_mask) == 0;
}

}  // namespace rung
