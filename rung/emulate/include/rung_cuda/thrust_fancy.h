// SPDX-License-Identifier: Apache-2.0
// Thrust's fancy iterators. On the host they contain their arguments; rung_place converts each
// iterator to its kernel version, which contains raw pointers.
#pragma once

#include <compare>

#include "rung_cuda/thrust_iterators.h"

namespace thrust {

/// Base class of iterators with an index. Self defines at(i), and origin(other), the offset of its
/// origin from the origin of the other iterator.
template <class Self, class Reference, class Value = std::remove_cvref_t<Reference>>
struct rung_iterator {
  typedef Value value_type;
  typedef std::ptrdiff_t difference_type;
  typedef Reference reference;
  typedef void pointer;
  typedef std::random_access_iterator_tag iterator_category;
  std::ptrdiff_t index = 0;
  __host__ __device__ Reference operator*() const { return self().at(index); }
  __host__ __device__ Reference operator[](std::ptrdiff_t i) const { return self().at(index + i); }
  __host__ __device__ Self& operator+=(std::ptrdiff_t n) {
    index += n;
    return static_cast<Self&>(*this);
  }
  __host__ __device__ Self operator+(std::ptrdiff_t n) const {
    Self moved = self();
    return moved += n;
  }
  __host__ __device__ Self& operator-=(std::ptrdiff_t n) { return *this += -n; }
  __host__ __device__ Self operator-(std::ptrdiff_t n) const { return *this + -n; }
  __host__ __device__ Self& operator++() { return *this += 1; }
  __host__ __device__ Self& operator--() { return *this += -1; }
  __host__ __device__ Self operator++(int) { return (*this += 1) - 1; }
  __host__ __device__ Self operator--(int) { return (*this += -1) + 1; }
  __host__ __device__ std::ptrdiff_t operator-(const rung_iterator& other) const {
    return index - other.index + self().origin(other.self());
  }
  __host__ __device__ bool operator==(const rung_iterator& other) const {
    return *this - other == 0;
  }
  __host__ __device__ bool operator!=(const rung_iterator& other) const {
    return *this - other != 0;
  }
  __host__ __device__ bool operator<(const rung_iterator& other) const { return *this - other < 0; }
  __host__ __device__ bool operator>(const rung_iterator& other) const { return *this - other > 0; }
  __host__ __device__ bool operator<=(const rung_iterator& other) const {
    return *this - other <= 0;
  }
  __host__ __device__ bool operator>=(const rung_iterator& other) const {
    return *this - other >= 0;
  }

 private:
  __host__ __device__ const Self& self() const { return static_cast<const Self&>(*this); }
};

template <class Iterator>
using rung_value = std::remove_cv_t<typename std::iterator_traits<Iterator>::value_type>;
template <class Iterator>
using rung_reference = decltype(std::declval<const Iterator&>()[0]);
/// Returns `there`, the kernel version of iterator `here`, advanced to the position of `here`.
template <class There, class Here>
There rung_moved(There there, const Here& here) {
  return there + here.index;
}

template <class T>
struct counting_iterator : rung_iterator<counting_iterator<T>, T> {
  T first{};
  __host__ __device__ explicit counting_iterator(T from = T{}) : first(from) {}
  __host__ __device__ T at(std::ptrdiff_t i) const { return static_cast<T>(first + i); }
  __host__ __device__ std::ptrdiff_t origin(const counting_iterator& other) const {
    return static_cast<std::ptrdiff_t>(first) - static_cast<std::ptrdiff_t>(other.first);
  }
};
template <class T>
__host__ __device__ counting_iterator<T> make_counting_iterator(T from) {
  return counting_iterator<T>(from);
}

template <class T>
struct constant_iterator : rung_iterator<constant_iterator<T>, T> {
  T value{};
  __host__ __device__ explicit constant_iterator(T of, std::ptrdiff_t at = 0) : value(of) {
    this->index = at;
  }
  __host__ __device__ T at(std::ptrdiff_t) const { return value; }
  __host__ __device__ std::ptrdiff_t origin(const constant_iterator&) const { return 0; }
};
template <class T>
__host__ __device__ constant_iterator<T> make_constant_iterator(T value, std::ptrdiff_t at = 0) {
  return constant_iterator<T>(value, at);
}

/// Reference that discards assigned values.
struct rung_sink {
  template <class T>
  __host__ __device__ const rung_sink& operator=(const T&) const {
    return *this;
  }
};
template <class System = void>
struct discard_iterator : rung_iterator<discard_iterator<System>, rung_sink> {
  __host__ __device__ explicit discard_iterator(std::ptrdiff_t at = 0) { this->index = at; }
  __host__ __device__ rung_sink at(std::ptrdiff_t) const { return {}; }
  __host__ __device__ std::ptrdiff_t origin(const discard_iterator&) const { return 0; }
};
__host__ __device__ inline discard_iterator<> make_discard_iterator(std::ptrdiff_t at = 0) {
  return discard_iterator<>(at);
}

template <class Function, class Base>
using rung_result = std::invoke_result_t<Function, decltype(*std::declval<rung_there<Base>>())>;

template <class Function, class Base, class = void, class = void>
struct transform_iterator
    : rung_iterator<transform_iterator<Function, Base>, rung_result<Function, Base>> {
  Base base;
  mutable Function function;  // mutable because operator() need not be const
  __host__ __device__ transform_iterator(Base of, Function by) : base(of), function(by) {}
  __host__ __device__ decltype(auto) at(std::ptrdiff_t i) const {
    return function(rung_place<Base>::of(base)[i]);
  }
  __host__ __device__ std::ptrdiff_t origin(const transform_iterator& other) const {
    return base - other.base;
  }
};
template <class Base, class Function>
__host__ __device__ transform_iterator<Function, Base> make_transform_iterator(Base base,
                                                                               Function by) {
  return {base, by};
}
template <class Function, class Base>
struct rung_place<transform_iterator<Function, Base>> {
  static constexpr bool on_device = rung_place<Base>::on_device;
  typedef transform_iterator<Function, Base> type;
  static type of(const type& iterator) { return iterator; }
};

/// Iterator whose element i is the element at the i-th index.
template <class Elements, class Indices>
struct permutation_iterator : rung_iterator<permutation_iterator<Elements, Indices>,
                                            rung_reference<Elements>, rung_value<Elements>> {
  Elements elements;
  Indices indices;
  __host__ __device__ permutation_iterator(Elements of, Indices by) : elements(of), indices(by) {}
  __host__ __device__ rung_reference<Elements> at(std::ptrdiff_t i) const {
    return elements[static_cast<rung_value<Indices>>(indices[i])];
  }
  __host__ __device__ std::ptrdiff_t origin(const permutation_iterator& other) const {
    return indices - other.indices;
  }
};
template <class Elements, class Indices>
__host__ __device__ permutation_iterator<Elements, Indices> make_permutation_iterator(Elements of,
                                                                                      Indices by) {
  return {of, by};
}
template <class Elements, class Indices>
struct rung_place<permutation_iterator<Elements, Indices>> {
  static constexpr bool on_device =
      rung_place<Elements>::on_device || rung_place<Indices>::on_device;
  typedef permutation_iterator<rung_there<Elements>, rung_there<Indices>> type;
  static type of(const permutation_iterator<Elements, Indices>& one) {
    return rung_moved(
        type(rung_place<Elements>::of(one.elements), rung_place<Indices>::of(one.indices)), one);
  }
};

template <class Base>
struct reverse_iterator
    : rung_iterator<reverse_iterator<Base>, rung_reference<Base>, rung_value<Base>> {
  Base end;
  __host__ __device__ explicit reverse_iterator(Base of) : end(of) {}
  __host__ __device__ rung_reference<Base> at(std::ptrdiff_t i) const { return end[-1 - i]; }
  __host__ __device__ std::ptrdiff_t origin(const reverse_iterator& other) const {
    return other.end - end;
  }
  __host__ __device__ Base base() const { return end - this->index; }
};
template <class Base>
__host__ __device__ reverse_iterator<Base> make_reverse_iterator(Base of) {
  return reverse_iterator<Base>(of);
}
template <class Base>
struct rung_place<reverse_iterator<Base>> {
  static constexpr bool on_device = rung_place<Base>::on_device;
  typedef reverse_iterator<rung_there<Base>> type;
  static type of(const reverse_iterator<Base>& one) {
    return rung_moved(type(rung_place<Base>::of(one.end)), one);
  }
};

/// Reference that applies a function to each assigned value and writes the result.
template <class Function, class Out>
struct rung_written {
  mutable Function function;
  Out out;
  template <class T>
  __host__ __device__ const rung_written& operator=(const T& value) const {
    *out = function(value);
    return *this;
  }
};
template <class Function, class Out>
struct transform_output_iterator
    : rung_iterator<transform_output_iterator<Function, Out>, rung_written<Function, Out>> {
  Out out;
  Function function;
  __host__ __device__ transform_output_iterator(Out to, Function by) : out(to), function(by) {}
  __host__ __device__ rung_written<Function, Out> at(std::ptrdiff_t i) const {
    return {function, out + i};
  }
  __host__ __device__ std::ptrdiff_t origin(const transform_output_iterator& other) const {
    return out - other.out;
  }
};
template <class Out, class Function>
__host__ __device__ transform_output_iterator<Function, Out> make_transform_output_iterator(
    Out to, Function by) {
  return {to, by};
}
template <class Function, class Out>
struct rung_place<transform_output_iterator<Function, Out>> {
  static constexpr bool on_device = rung_place<Out>::on_device;
  typedef transform_output_iterator<Function, rung_there<Out>> type;
  static type of(const transform_output_iterator<Function, Out>& one) {
    return rung_moved(type(rung_place<Out>::of(one.out), one.function), one);
  }
};

/// Several iterators that advance together. Dereferences to a tuple of references.
template <class Iterators>
struct zip_iterator;
template <class... Iterators>
struct zip_iterator<std::tuple<Iterators...>>
    : rung_iterator<zip_iterator<std::tuple<Iterators...>>,
                    std::tuple<rung_reference<Iterators>...>,
                    std::tuple<rung_value<Iterators>...>> {
  std::tuple<Iterators...> iterators;
  __host__ __device__ explicit zip_iterator(std::tuple<Iterators...> of) : iterators(of) {}
  __host__ __device__ explicit zip_iterator(Iterators... of)
    requires(sizeof...(Iterators) > 1)
      : iterators(of...) {}
  __host__ __device__ std::tuple<rung_reference<Iterators>...> at(std::ptrdiff_t i) const {
    return std::apply(
        [=](const Iterators&... each) {
          return std::tuple<rung_reference<Iterators>...>(each[i]...);
        },
        iterators);
  }
  __host__ __device__ std::ptrdiff_t origin(const zip_iterator& other) const {
    return std::get<0>(iterators) - std::get<0>(other.iterators);
  }
  /// Returns the component iterators at the current position.
  __host__ __device__ std::tuple<Iterators...> get_iterator_tuple() const {
    return std::apply(
        [this](const Iterators&... each) {
          return std::tuple<Iterators...>((each + this->index)...);
        },
        iterators);
  }
};
template <class... Iterators>
__host__ __device__ zip_iterator<std::tuple<Iterators...>> make_zip_iterator(
    std::tuple<Iterators...> of) {
  return zip_iterator<std::tuple<Iterators...>>(of);
}
template <class... Iterators>
  requires(sizeof...(Iterators) > 1)
__host__ __device__ zip_iterator<std::tuple<Iterators...>> make_zip_iterator(Iterators... of) {
  return zip_iterator<std::tuple<Iterators...>>(std::tuple<Iterators...>(of...));
}
template <class... Iterators>
struct rung_place<zip_iterator<std::tuple<Iterators...>>> {
  static constexpr bool on_device = (rung_place<Iterators>::on_device || ...);
  typedef zip_iterator<std::tuple<rung_there<Iterators>...>> type;
  static type of(const zip_iterator<std::tuple<Iterators...>>& one) {
    return rung_moved(
        std::apply(
            [](const Iterators&... each) {
              return type(std::tuple<rung_there<Iterators>...>(rung_place<Iterators>::of(each)...));
            },
            one.iterators),
        one);
  }
};

/// Adapts a function of several arguments to a tuple.
template <class Function>
struct zip_function {
  mutable Function function;
  template <class Tuple>
  __host__ __device__ decltype(auto) operator()(Tuple&& arguments) const {
    return std::apply(function, static_cast<Tuple&&>(arguments));
  }
};
template <class Function>
__host__ __device__ zip_function<Function> make_zip_function(Function function) {
  return {function};
}

}  // namespace thrust
