// SPDX-License-Identifier: Apache-2.0
// What tensor_ref.hpp makes references from: pointers, contiguous containers and objects like
// std::mdspan, each with a type of element that rung has.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>  // and with it the concepts of std::ranges
#include <type_traits>

#include "rung/core/dtype.hpp"
#include "rung/core/extents.hpp"

namespace rung {

/// A T that has a DType: float, f16, __half, std::int64_t ... (dtype.hpp), const or not. Void is
/// void where elements may be written, const void where they are only read.
template <class T, class Void>
concept ElementFor = !std::is_volatile_v<T> && (std::is_const_v<Void> || !std::is_const_v<T>) &&
                     requires { DTypeOf<std::remove_const_t<T>>::value; };

/// A pointer that says nothing of its elements: to void or std::byte (const where they are only
/// read), or nullptr.
template <class P, class Void>
concept UntypedPointer =
    std::convertible_to<P, Void*> &&
    (std::is_null_pointer_v<P> || std::is_void_v<std::remove_pointer_t<P>> ||
     std::same_as<std::remove_const_t<std::remove_pointer_t<P>>, std::byte>);

/// An array, std::array, std::vector, std::span ...: elements one behind the other, and how many.
/// Temporary containers are none: their elements are gone before a reference to them is used.
template <class R, class Void>
concept ContainerFor =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    std::ranges::borrowed_range<R> &&
    ElementFor<std::remove_reference_t<std::ranges::range_reference_t<R>>, Void>;

/// std::mdspan and what has its members, strided and over plain elements: an accessor that computes
/// what it gives (std::linalg::scaled) has no elements to refer to.
template <class M, class Void>
concept MdspanFor =
    requires(const M& m) {
      { m.rank() } -> std::integral;
      { m.extent(0) } -> std::integral;
      { m.stride(0) } -> std::integral;
      requires std::is_pointer_v<std::remove_cvref_t<decltype(m.data_handle())>>;
      requires ElementFor<std::remove_pointer_t<std::remove_cvref_t<decltype(m.data_handle())>>,
                          Void>;
    } &&
    (!requires { typename M::reference; } || std::is_lvalue_reference_v<typename M::reference>) &&
    (!requires { M::is_always_strided(); } || M::is_always_strided());

namespace detail {

void the_pointer_has_elements_of_another_type();  // not constexpr: naming it does not compile

/// The DType of T, spelt out beside a pointer to T; another one does not compile.
template <class T>
struct SpeltDType {
  // NOLINTNEXTLINE(google-explicit-constructor)
  consteval SpeltDType(DType dtype) {
    if (dtype != dtype_of<T>) the_pointer_has_elements_of_another_type();
  }
};

/// The `rank` numbers that `at` gives for 0, 1, ...; of more than max_rank the rank alone, which
/// the reference's constructor rejects.
template <class At>
Extents extents_from(std::size_t rank, const At& at) {
  Extents result;
  result.rank = static_cast<int>(rank);
  for (int axis = 0; result.has_valid_rank() && axis < result.rank; ++axis) {
    result[axis] = static_cast<std::int64_t>(at(axis));
  }
  return result;
}

}  // namespace detail
}  // namespace rung
