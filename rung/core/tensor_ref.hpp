// SPDX-License-Identifier: Apache-2.0
// TensorRef: type-erased, non-owning reference to a tensor (pointer, dtype, shape, strides,
// device); the parameter type of public functions. Tensor (tensor.hpp) owns memory.
//
//   std::vector<float> v(12);
//   TensorRef y(v, {3, 4});                  // a container: its type and size are known
//   ConstTensorRef x(p, {m, n}, {ld, 1});    // const float* p: the type is the pointer's
//   ConstTensorRef z(bytes, dtype, {m, n});  // const void* and a DType of run time
//   softmax(context, mdspan, y);             // std::mdspan, Kokkos::mdspan, View
//
// Shape     up to max_rank extents; none: a scalar. Extents may be zero.
// Strides   one per extent, in elements; may be zero (broadcast), negative and in any order.
//           Default: C-contiguous.
// Alignment data must be aligned to the size of an element (1, 2, 4 or 8 bytes), on GPUs too,
//           unless the tensor is empty. Alignment to 16 bytes is faster.
// Device    the index counts GPUs; it is 0 for cpu and simt.
// Errors    constructors throw Error(invalid_argument) for contradictory arguments: unequal numbers
//           of strides and extents, a shape larger than the container, an invalid DType or Backend,
//           misaligned data. Fields set by hand are checked by operators.
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
/// Returns true if the host may access the backend's tensors through their pointers.
constexpr bool in_host_memory(Backend backend) noexcept {
  return backend == Backend::cpu || backend == Backend::simt;
}
RUNG_API const char* to_string(Backend backend) noexcept;
/// Returns all names, for messages: "cpu, cuda, simt, opencl".
RUNG_API std::string backend_names();
/// Parses a backend's name; throws Error(invalid_argument).
RUNG_API Backend parse_backend(std::string_view text);

/// Device that memory belongs to. Memory of the simulated GPU is host memory, which cpu contexts
/// also use in a build with simt. The index of an OpenCL device counts the devices of all
/// platforms.
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
/// Throws Error with the reason if a tensor is not consistent().
RUNG_API void check_consistent(const ConstTensorRef& tensor);
/// Throws Error unless every element of the tensor is within the `count` elements from data on.
RUNG_API void check_inside(const ConstTensorRef& tensor, std::size_t count);
/// Throw the Error of view<T, rank>() or data<T>() for a T of DType `requested`.
[[noreturn]] RUNG_API void throw_no_view(const ConstTensorRef& tensor, DType requested, int rank);
[[noreturn]] RUNG_API void throw_no_data(const ConstTensorRef& tensor, DType requested);

/// Returns true if elements of a DType may be read as T: their own type, an unsigned type of the
/// same width (the bits), or a type without a DType, which is not checked.
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
/// Returns the DType of T, or `dtype` if T has none.
template <class T>
constexpr DType asked_type(DType dtype) {
  if constexpr (ElementFor<std::remove_cv_t<T>, void>) {
    return dtype_of<T>;
  } else {
    return dtype;
  }
}
}  // namespace detail

/// Reference to a tensor. Void is void if elements may be written, const void if not.
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
#pragma GCC diagnostic ignored "-Wshadow"  // parameters have the names of the members
  /// References untyped memory. A pointer with an element type implies the DType; cast it to void*
  /// if the DType is known only at run time.
  template <UntypedPointer<Void> P>
  BasicTensorRef(P data, DType dtype, const Extents& shape, const Extents& strides,
                 Device device = {})
      : data(data), dtype(dtype), device(device), shape(shape), strides(strides) {
    if (!consistent()) detail::check_consistent(*this);  // checks again, to throw the reason
  }
  template <UntypedPointer<Void> P>
  BasicTensorRef(P data, DType dtype, const Extents& shape, Device device = {})
      : BasicTensorRef(data, dtype, shape, shape.contiguous_strides(), device) {}

  /// References elements of the pointer's type: ConstTensorRef(x, {m, n}).
  template <ElementFor<Void> T>
  BasicTensorRef(T* const& data, const Extents& shape, const Extents& strides, Device device = {})
      : BasicTensorRef(static_cast<Void*>(data), dtype_of<T>, shape, strides, device) {}
  template <ElementFor<Void> T>
  BasicTensorRef(T* const& data, const Extents& shape, Device device = {})
      : BasicTensorRef(static_cast<Void*>(data), dtype_of<T>, shape, device) {}

  /// References elements whose DType is given as a constant; it must match the pointer's type.
  template <ElementFor<Void> T>
  BasicTensorRef(T* data, std::type_identity_t<detail::SpeltDType<T>>, const Extents& shape,
                 const Extents& strides, Device device = {})
      : BasicTensorRef(data, shape, strides, device) {}
  template <ElementFor<Void> T>
  BasicTensorRef(T* data, std::type_identity_t<detail::SpeltDType<T>>, const Extents& shape,
                 Device device = {})
      : BasicTensorRef(data, shape, device) {}

  /// References the elements of a container, from the first on; throws Error if it has too few.
  template <ContainerFor<Void> R>
  BasicTensorRef(R&& container, const Extents& shape, const Extents& strides, Device device = {})
      : BasicTensorRef(std::ranges::data(container), shape, strides, device) {
    detail::check_inside(*this, std::ranges::size(container));
  }
  template <ContainerFor<Void> R>
  BasicTensorRef(R&& container, const Extents& shape, Device device = {})
      : BasicTensorRef(container, shape, shape.contiguous_strides(), device) {}
  /// References all elements of a container as one axis. Containers, mdspans and views convert
  /// implicitly: reduce(context, vector, y).
  template <ContainerFor<Void> R>
  BasicTensorRef(R&& container, Device device = {})  // NOLINT(google-explicit-constructor)
      : BasicTensorRef(std::ranges::data(container),
                       {static_cast<std::int64_t>(std::ranges::size(container))}, device) {}

  /// References an array of arrays: float a[2][3] is a matrix.
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

  // Rejects unsupported arguments. Compilers print Why, a type named after the reason, instead of
  // every constructor above with its constraints: 15 lines instead of 140.
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

  /// Converts a writable reference to a read-only one.
  template <class Other>
  requires(std::is_const_v<Void> && !std::is_const_v<Other>)
      BasicTensorRef(const BasicTensorRef<Other>& other)  // NOLINT(google-explicit-constructor)
      : data(other.data),
        dtype(other.dtype),
        device(other.device),
        shape(other.shape),
        strides(other.strides) {}

  /// Returns whether the fields describe a valid tensor, as the constructors ensure.
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

  /// Returns the typed view. Throws Error unless N is the rank and T matches the dtype
  /// (detail::reads_as()). Without data nothing is checked, and the view has a null pointer.
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

/// Half-open range of addresses that a tensor's elements span; {0, 0} if it is empty.
struct ByteRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  [[nodiscard]] bool overlaps(const ByteRange& other) const {
    return begin < other.end && other.begin < end;
  }
};
RUNG_API ByteRange byte_range(const ConstTensorRef& tensor);

/// Returns whether two elements of different index may share memory (writes would be ambiguous).
/// Exact for rows, columns, slices and permutations; for unusual strides it may return true for a
/// tensor that does not overlap itself.
RUNG_API bool self_overlaps(const ConstTensorRef& tensor);

/// Returns whether two tensors have equal dtype, shape, strides and device. Accepts any type with
/// these fields; the ranks of `b` must be valid.
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

/// Returns whether two data pointers are equal in the properties on which the choice of rung may
/// depend: null or not, and alignment up to 16 bytes.
inline bool aligned_alike(const void* a, const void* b) {
  constexpr std::uintptr_t vector_mask = 15;
  return (a == nullptr) == (b == nullptr) &&
         ((reinterpret_cast<std::uintptr_t>(a) ^ reinterpret_cast<std::uintptr_t>(b)) &
          vector_mask) == 0;
}

/// Returns whether axes and alignment are equal, on which the choice of rung may depend.
inline bool same_layout(const ConstTensorRef& a, const ConstTensorRef& b) {
  return same_axes(a, b) && aligned_alike(a.data, b.data);
}

}  // namespace rung
