// SPDX-License-Identifier: Apache-2.0
// Types that tensor_ref.hpp accepts as sources of a tensor's elements: pointers, contiguous
// containers and objects like std::mdspan, of element types that rung supports.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>  // and with it the concepts of std::ranges
#include <type_traits>
#include <utility>

#include "rung/core/dtype.hpp"
#include "rung/core/extents.hpp"

namespace rung {

/// Element type with a DType: float, f16, __half, std::int64_t ... (dtype.hpp). Void is void for a
/// writable reference, which excludes const elements, and const void for a read-only one.
template <class T, class Void>
concept ElementFor = !std::is_volatile_v<T> && (std::is_const_v<Void> || !std::is_const_v<T>) &&
                     requires { DTypeOf<std::remove_const_t<T>>::value; };

/// Pointer without an element type: to void or std::byte (const if read only), or nullptr.
template <class P, class Void>
concept UntypedPointer =
    std::convertible_to<P, Void*> &&
    (std::is_null_pointer_v<P> || std::is_void_v<std::remove_pointer_t<P>> ||
     std::same_as<std::remove_const_t<std::remove_pointer_t<P>>, std::byte>);

/// Contiguous sized range: an array, std::array, std::vector, std::span ... Temporary containers
/// are excluded, since their elements are destroyed before a reference to them is used.
template <class R, class Void>
concept ContainerFor =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    std::ranges::borrowed_range<R> &&
    ElementFor<std::remove_reference_t<std::ranges::range_reference_t<R>>, Void>;

/// std::mdspan, or a type with the same members, strided over stored elements. Accessors that
/// compute elements (std::linalg::scaled) are rejected: they have no element to refer to.
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

/// Array of two or more dimensions, such as float[2][3].
template <class A, class Void>
concept NestedArrayFor = (std::rank_v<A> > 1) && ElementFor<std::remove_all_extents_t<A>, Void>;

namespace detail {

// Reasons for rejecting an argument, as they appear in compiler errors.
struct rung_has_no_DType_for_these_elements;
struct the_elements_are_const_but_this_tensor_is_written;
struct the_elements_are_volatile;
struct the_elements_are_not_contiguous_in_memory;
struct the_container_is_temporary_and_its_elements_would_be_gone;
struct the_mdspan_is_not_strided_over_plain_elements;
struct a_pointer_to_void_or_byte_needs_a_DType;
struct a_container_comes_without_a_DType;
struct a_number_is_no_tensor_pass_its_address_and_the_shape_1;

/// Returns the reason why T cannot be the element type of a reference; void if it can.
template <class T, class Void>
consteval auto why_not_elements() {
  if constexpr (std::is_volatile_v<T>) {
    return std::type_identity<the_elements_are_volatile>();
  } else if constexpr (!ElementFor<std::remove_const_t<T>, Void>) {
    return std::type_identity<rung_has_no_DType_for_these_elements>();
  } else if constexpr (!ElementFor<T, Void>) {
    return std::type_identity<the_elements_are_const_but_this_tensor_is_written>();
  } else {
    return std::type_identity<void>();
  }
}

/// Returns the reason for rejecting an argument of type R&&; void if it is accepted or if its type
/// has no elements.
template <class R, class Void>
consteval auto why_not() {
  using Given = std::remove_cvref_t<R>;
  if constexpr (std::is_pointer_v<Given>) {
    using T = std::remove_pointer_t<Given>;
    if constexpr (UntypedPointer<Given, const void>) {
      return std::type_identity<a_pointer_to_void_or_byte_needs_a_DType>();
    } else {
      return why_not_elements<T, Void>();
    }
  } else if constexpr (NestedArrayFor<std::remove_reference_t<R>, Void>) {  // NOLINT: a range, too
    return std::type_identity<void>();
  } else if constexpr (std::ranges::contiguous_range<R>) {
    using T = std::remove_reference_t<std::ranges::range_reference_t<R>>;
    using Why = decltype(why_not_elements<T, Void>());
    if constexpr (std::is_void_v<typename Why::type> && !std::ranges::borrowed_range<R>) {
      return std::type_identity<the_container_is_temporary_and_its_elements_would_be_gone>();
    } else {
      return Why();
    }
  } else if constexpr (std::ranges::range<R>) {
    return std::type_identity<the_elements_are_not_contiguous_in_memory>();
  } else if constexpr (requires(const Given& given) { given.data_handle(); }) {
    using Handle = std::remove_cvref_t<decltype(std::declval<const Given&>().data_handle())>;
    using Why = decltype(why_not_elements<std::remove_pointer_t<Handle>, Void>());
    if constexpr (std::is_void_v<typename Why::type> && !MdspanFor<Given, Void>) {
      return std::type_identity<the_mdspan_is_not_strided_over_plain_elements>();
    } else {
      return Why();
    }
  } else if constexpr (std::is_arithmetic_v<Given>) {
    return std::type_identity<a_number_is_no_tensor_pass_its_address_and_the_shape_1>();
  } else {
    return std::type_identity<void>();
  }
}

/// Returns the reason for rejecting a pointer (or decayed array) that is passed with a DType; void
/// if there is none.
template <class R, class Void>
consteval auto why_not_typed() {
  using Given = std::decay_t<R>;
  if constexpr (UntypedPointer<Given, Void>) {  // NOLINT: like the last branch, but first
    return std::type_identity<void>();
  } else if constexpr (UntypedPointer<Given, const void>) {
    return std::type_identity<the_elements_are_const_but_this_tensor_is_written>();
  } else if constexpr (std::is_pointer_v<Given>) {
    return why_not_elements<std::remove_pointer_t<Given>, Void>();
  } else if constexpr (std::ranges::range<R>) {
    return std::type_identity<a_container_comes_without_a_DType>();
  } else {
    return std::type_identity<void>();
  }
}

template <class R, class Void>
using WhyNot = typename decltype(why_not<R, Void>())::type;
template <class R, class Void>
using WhyNotTyped = typename decltype(why_not_typed<R, Void>())::type;
template <class Why>
concept Reason = !std::is_void_v<Why>;

/// Return the extents of an array such as float[2][3], and a span of its elements.
template <class A>
Extents extents_of() {
  Extents extents;
  extents.rank = static_cast<int>(std::rank_v<A>);
  [&]<std::size_t... axis>(std::index_sequence<axis...>) {
    static_assert(sizeof...(axis) <= max_rank, "an array of more axes than tensors have");
    ((extents.at[axis] = static_cast<std::int64_t>(std::extent_v<A, axis>)), ...);
  }(std::make_index_sequence<std::rank_v<A>>());
  return extents;
}
template <class A>
auto all_elements(A& array) {
  using T = std::remove_all_extents_t<A>;
  return std::span<T>(reinterpret_cast<T*>(&array), sizeof(array) / sizeof(T));
}

void the_pointer_has_elements_of_another_type();  // not constexpr: naming it does not compile

/// DType of T, passed explicitly with a pointer to T; any other DType fails to compile.
template <class T>
struct SpeltDType {
  // NOLINTNEXTLINE(google-explicit-constructor)
  consteval SpeltDType(DType dtype) {
    if (dtype != dtype_of<T>) the_pointer_has_elements_of_another_type();
  }
};

/// Returns the extents at(0), at(1), ...; if `rank` exceeds max_rank only the rank is set, which
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
