// SPDX-License-Identifier: Apache-2.0
// TensorRef: pointer, type, shape, strides and place, with the element type erased; it is what
// public functions take. It owns nothing (tensor.hpp has what does).
//
//   std::vector<float> v(12);
//   TensorRef y(v, {3, 4});                  // a container: its type and size are known
//   ConstTensorRef x(p, {m, n}, {ld, 1});    // const float* p: the type is the pointer's
//   ConstTensorRef z(bytes, dtype, {m, n});  // const void* and a DType of run time
//   softmax(context, mdspan, y);             // std::mdspan, Kokkos::mdspan, View
//
// Shape     up to max_rank extents; none: a scalar. Extents may be zero.
// Strides   one for each extent; they count elements, may be zero (broadcast), negative and in any
//           order. Left out: C-contiguous.
// Alignment data is aligned to the size of an element (1, 2, 4 or 8 bytes), on a GPU too, unless
//           the tensor is empty. Nothing more is needed; 16 bytes are faster.
// Device    the index counts GPUs; it is 0 for cpu and simt.
// Errors    constructors throw Error(invalid_argument) for what contradicts itself: strides of
//           another number than extents, a shape larger than the container, a DType or Backend that
//           does not exist, data that are not aligned. Fields set by hand are checked by operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "rung/core/dtype.hpp"
#include "rung/core/element_sources.hpp"
#include "rung/core/export.hpp"
#include "rung/core/extents.hpp"
#include "rung/core/view.hpp"

namespace rung {

enum class Backend : std::uint8_t { cpu, cuda, simt, opencl };
inline constexpr Backend all_backends[] = {Backend::cpu, Backend::cuda, Backend::simt,
                                           Backend::opencl};
constexpr bool is_backend(Backend backend) noexcept { return backend <= Backend::opencl; }
/// Returns true if the host reads and writes its tensors through their pointers.
constexpr bool in_host_memory(Backend backend) noexcept {
  return backend == Backend::cpu || backend == Backend::simt;
}
RUNG_API const char* to_string(Backend backend) noexcept;
/// Returns all names, for messages: "cpu, cuda, simt, opencl".
RUNG_API std::string backend_names();
/// Reads one of these names; throws Error(invalid_argument).
RUNG_API Backend parse_backend(std::string_view text);

/// Device that memory belongs to. The simulated GPU's is host memory, which cpu shares in a build
/// with simt. An OpenCL device's index counts the devices of all platforms in order.
struct Device {
  Backend backend = Backend::cpu;
  int index = 0;
  bool operator==(const Device&) const = default;
};

template <class Void>
struct BasicTensorRef;
using TensorRef = BasicTensorRef<void>;
using ConstTensorRef = BasicTensorRef<const void>;

namespace detail {
/// Throws Error that says why a tensor is not consistent().
RUNG_API void check_consistent(const ConstTensorRef& tensor);
/// Throws Error unless every element of the tensor is one of the `count` from its data on.
RUNG_API void check_inside(const ConstTensorRef& tensor, std::size_t count);
/// Throws Error: the tensor is no view<T, rank>() or data<T>() of the DType `asked`.
[[noreturn]] RUNG_API void throw_no_view(const ConstTensorRef& tensor, DType asked, int rank);
[[noreturn]] RUNG_API void throw_no_data(const ConstTensorRef& tensor, DType asked);

/// Returns true if elements of a DType may be read as T: their own type, unsigned numbers as wide,
/// which are their bits, or a type without a DType, about which nothing is known.
template <class T>
constexpr bool reads_as(DType dtype) {
  using Element = std::remove_cv_t<T>;
  if constexpr (!ElementFor<Element, void>) {
    return true;
  } else if constexpr (std::is_unsigned_v<Element>) {
    return size_of(dtype) == sizeof(Element);
  } else {
    return dtype == dtype_of<Element>;
  }
}
/// Returns the DType of T, or that of the tensor where T has none.
template <class T>
constexpr DType asked_type(DType dtype) {
  if constexpr (ElementFor<std::remove_cv_t<T>, void>) {
    return dtype_of<T>;
  } else {
    return dtype;
  }
}
}  // namespace detail

/// Void is void or const void: a reference through which the elements may be written, or not.
template <class Void>
struct BasicTensorRef {
  Void* data = nullptr;
  DType dtype = DType::f32;
  Device device;
  Extents shape;
  Extents strides;

  BasicTensorRef() = default;
  bool operator==(const BasicTensorRef&) const = default;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // arguments have the names of the members
  /// Memory of which only the program knows what it holds. A pointer to elements says it itself:
  /// cast it to void* where the DType is known at run time only.
  template <UntypedPointer<Void> P>
  BasicTensorRef(P data, DType dtype, const Extents& shape, const Extents& strides,
                 Device device = {})
      : data(data), dtype(dtype), device(device), shape(shape), strides(strides) {
    if (!consistent()) detail::check_consistent(*this);  // once more, in words
  }
  template <UntypedPointer<Void> P>
  BasicTensorRef(P data, DType dtype, const Extents& shape, Device device = {})
      : BasicTensorRef(data, dtype, shape, shape.contiguous_strides(), device) {}

  /// ConstTensorRef(x, {m, n}): the type is that of the pointer.
  template <ElementFor<Void> T>
  BasicTensorRef(T* const& data, const Extents& shape, const Extents& strides, Device device = {})
      : BasicTensorRef(static_cast<Void*>(data), dtype_of<T>, shape, strides, device) {}
  template <ElementFor<Void> T>
  BasicTensorRef(T* const& data, const Extents& shape, Device device = {})
      : BasicTensorRef(static_cast<Void*>(data), dtype_of<T>, shape, device) {}

  /// Describes a tensor with its type given as a constant, which must be that of the pointer.
  template <ElementFor<Void> T>
  BasicTensorRef(T* data, std::type_identity_t<detail::SpeltDType<T>>, const Extents& shape,
                 const Extents& strides, Device device = {})
      : BasicTensorRef(data, shape, strides, device) {}
  template <ElementFor<Void> T>
  BasicTensorRef(T* data, std::type_identity_t<detail::SpeltDType<T>>, const Extents& shape,
                 Device device = {})
      : BasicTensorRef(data, shape, device) {}

  /// The elements of a container, from its first one on; throws Error when it has too few.
  template <ContainerFor<Void> R>
  BasicTensorRef(R&& container, const Extents& shape, const Extents& strides, Device device = {})
      : BasicTensorRef(std::ranges::data(container), shape, strides, device) {
    detail::check_inside(*this, std::ranges::size(container));
  }
  template <ContainerFor<Void> R>
  BasicTensorRef(R&& container, const Extents& shape, Device device = {})
      : BasicTensorRef(container, shape, shape.contiguous_strides(), device) {}
  /// All of them, as one axis. Containers, mdspans and views convert by themselves:
  /// reduce(context, vector, y).
  template <ContainerFor<Void> R>
  BasicTensorRef(R&& container, Device device = {})  // NOLINT(google-explicit-constructor)
      : BasicTensorRef(std::ranges::data(container),
                       {static_cast<std::int64_t>(std::ranges::size(container))}, device) {}

  /// float a[2][3]: a matrix.
  template <NestedArrayFor<Void> A>
  BasicTensorRef(A& array, Device device = {})  // NOLINT(google-explicit-constructor)
      : BasicTensorRef(detail::all_elements(array), detail::extents_of<A>(), device) {}
  template <NestedArrayFor<Void> A>
  BasicTensorRef(A& array, const Extents& shape, const Extents& strides, Device device = {})
      : BasicTensorRef(detail::all_elements(array), shape, strides, device) {}
  template <NestedArrayFor<Void> A>
  BasicTensorRef(A& array, const Extents& shape, Device device = {})
      : BasicTensorRef(detail::all_elements(array), shape, device) {}

  template <MdspanFor<Void> M>
  BasicTensorRef(const M& mdspan, Device device = {})  // NOLINT(google-explicit-constructor)
      : BasicTensorRef(
            mdspan.data_handle(),
            detail::extents_from(mdspan.rank(), [&](auto axis) { return mdspan.extent(axis); }),
            detail::extents_from(mdspan.rank(), [&](auto axis) { return mdspan.stride(axis); }),
            device) {}

  template <ElementFor<Void> T, int N>
  BasicTensorRef(const View<T, N>& view, Device device = {})  // NOLINT(google-explicit-constructor)
      : BasicTensorRef(view.data, Extents(std::span(view.shape, N)),
                       Extents(std::span(view.strides, N)), device) {}

#pragma GCC diagnostic pop

  // Refuses what is no tensor. A compiler prints Why, a type whose name is the reason, in place
  // of every constructor above with its constraints: 15 lines instead of 140.
  template <class R, class Why = detail::WhyNot<R, Void>>
  requires detail::Reason<Why> BasicTensorRef(R&&, Device = {})
  = delete;
  template <class R, class Why = detail::WhyNot<R, Void>>
  requires detail::Reason<Why> BasicTensorRef(R&&, const Extents&, Device = {})
  = delete;
  template <class R, class Why = detail::WhyNot<R, Void>>
  requires detail::Reason<Why> BasicTensorRef(R&&, const Extents&, const Extents&, Device = {})
  = delete;
  template <class R, class Why = detail::WhyNotTyped<R, Void>>
  requires detail::Reason<Why> BasicTensorRef(R&&, DType, const Extents&, Device = {})
  = delete;
  template <class R, class Why = detail::WhyNotTyped<R, Void>>
  requires detail::Reason<Why> BasicTensorRef(R&&, DType, const Extents&, const Extents&,
                                              Device = {})
  = delete;

  /// Writable to read-only.
  template <class Other>
  requires(std::is_const_v<Void> && !std::is_const_v<Other>)
      BasicTensorRef(const BasicTensorRef<Other>& other)  // NOLINT(google-explicit-constructor)
      : data(other.data),
        dtype(other.dtype),
        device(other.device),
        shape(other.shape),
        strides(other.strides) {}

  /// Returns whether the fields describe a tensor, as the constructors see to.
  [[nodiscard]] bool consistent() const {
    return is_dtype(dtype) && shape.has_valid_rank() && shape.rank == strides.rank &&
           (in_host_memory(device.backend) ? device.index == 0
                                           : is_backend(device.backend) && device.index >= 0) &&
           (reinterpret_cast<std::uintptr_t>(data) & (size_of(dtype) - 1)) == 0;
  }

  [[nodiscard]] int rank() const { return shape.rank; }
  [[nodiscard]] std::int64_t size() const { return shape.product(); }
  [[nodiscard]] bool empty() const {
    for (int axis = 0; axis < shape.rank; ++axis) {
      if (shape[axis] == 0) return true;
    }
    return false;
  }

  /// Returns the typed view. N is the rank; T reads the dtype (detail::reads_as()). Throws Error
  /// otherwise. A tensor without data and axes gives an empty view.
  template <class T, int N>
  [[nodiscard]] View<T, N> view() const {
    if ((!detail::reads_as<T>(dtype) || shape.rank != N) && data != nullptr) [[unlikely]] {
      detail::throw_no_view(*this, detail::asked_type<T>(dtype), N);
    }
    View<T, N> typed;
    typed.data = static_cast<T*>(data);
    for (int axis = 0; axis < N; ++axis) {
      typed.shape[axis] = shape[axis];
      typed.strides[axis] = strides[axis];
    }
    return typed;
  }
};

/// The half-open range of bytes that the elements of a tensor span; {0, 0} when it is empty.
struct ByteRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  [[nodiscard]] bool overlaps(const ByteRange& other) const {
    return begin < other.end && other.begin < end;
  }
};
RUNG_API ByteRange byte_range(const ConstTensorRef& tensor);

/// Returns whether two elements of different index may share memory (so that writing would be
/// ambiguous). Conservative only for exotic strides: rows, columns, slices and permutations are
/// decided exactly.
RUNG_API bool self_overlaps(const ConstTensorRef& tensor);

/// Same type, shape, strides and place. Of tensors, or of what has their fields; the ranks of `b`
/// are valid.
RUNG_ALWAYS_INLINE inline bool same_axes(const auto& a, const auto& b) {
  const int rank = b.shape.rank;
  if (a.dtype != b.dtype || a.shape.rank != rank || a.strides.rank != rank ||
      a.device != b.device) {
    return false;
  }
  for (int axis = 0; axis < rank; ++axis) {
    if (a.shape.at[axis] != b.shape.at[axis] || a.strides.at[axis] != b.strides.at[axis]) {
      return false;
    }
  }
  return true;
}

/// Returns whether data pointers agree in what may decide which rung serves a call: null or not,
/// and alignment up to 16 bytes.
inline bool aligned_alike(const void* a, const void* b) {
  constexpr std::uintptr_t vector_mask = 15;
  return (a == nullptr) == (b == nullptr) &&
         ((reinterpret_cast<std::uintptr_t>(a) ^ reinterpret_cast<std::uintptr_t>(b)) &
          vector_mask) == 0;
}

/// Same axes and alignment: what decides which rung may serve a call.
inline bool same_layout(const ConstTensorRef& a, const ConstTensorRef& b) {
  return same_axes(a, b) && aligned_alike(a.data, b.data);
}

}  // namespace rung
