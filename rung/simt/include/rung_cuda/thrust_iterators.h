// SPDX-License-Identifier: Apache-2.0
// Thrust's function objects, policies and iterators, and where an algorithm over these runs.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <tuple>
#include <utility>

#include "rung_cuda/thrust_memory.h"

#define THRUST_HOST_DEVICE __host__ __device__
#define THRUST_DEVICE __device__
#define THRUST_HOST __host__

namespace thrust {

using std::default_random_engine;
using std::divides;
using std::equal_to;
using std::get;
using std::greater;
using std::greater_equal;
using std::less;
using std::less_equal;
using std::logical_and;
using std::logical_not;
using std::logical_or;
using std::make_pair;
using std::make_tuple;
using std::max;
using std::min;
using std::minus;
using std::modulus;
using std::multiplies;
using std::negate;
using std::normal_distribution;
using std::not_equal_to;
using std::pair;
using std::plus;
using std::tie;
using std::tuple;
using std::uniform_int_distribution;
using std::uniform_real_distribution;

template <class Argument, class Result>
struct unary_function {
  typedef Argument argument_type;
  typedef Result result_type;
};
template <class First, class Second, class Result>
struct binary_function {
  typedef First first_argument_type;
  typedef Second second_argument_type;
  typedef Result result_type;
};

template <class T = void>
struct maximum {
  __host__ __device__ T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
template <class T = void>
struct minimum {
  __host__ __device__ T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
template <class T = void>
struct identity {
  __host__ __device__ const T& operator()(const T& value) const { return value; }
};
template <class T = void>
struct square {
  __host__ __device__ T operator()(const T& value) const { return value * value; }
};

struct host_policy {};
struct device_policy {
  cudaStream_t stream = nullptr;
  [[nodiscard]] device_policy on(cudaStream_t other) const { return {other}; }
};
inline constexpr host_policy host;
inline constexpr host_policy seq;
inline constexpr device_policy device;
namespace cuda {
inline constexpr device_policy par;
inline constexpr device_policy par_nosync;
}  // namespace cuda

/// What the iterators below are made of: an index into something that is not memory.
template <class Self, class Value>
struct rung_iterator {
  typedef std::remove_cvref_t<Value> value_type;
  typedef std::ptrdiff_t difference_type;
  typedef Value reference;
  typedef void pointer;
  typedef std::random_access_iterator_tag iterator_category;
  std::ptrdiff_t index = 0;
  __host__ __device__ Value operator*() const { return self().at(index); }
  __host__ __device__ Value operator[](std::ptrdiff_t i) const { return self().at(index + i); }
  __host__ __device__ Self operator+(std::ptrdiff_t n) const {
    Self moved = self();
    moved.index += n;
    return moved;
  }
  __host__ __device__ Self operator-(std::ptrdiff_t n) const { return *this + -n; }
  __host__ __device__ std::ptrdiff_t operator-(const rung_iterator& other) const {
    return index - other.index;
  }
  __host__ __device__ Self& operator++() {
    ++index;
    return static_cast<Self&>(*this);
  }
  __host__ __device__ bool operator==(const rung_iterator& other) const {
    return index == other.index;
  }

 private:
  __host__ __device__ const Self& self() const { return static_cast<const Self&>(*this); }
};

template <class T>
struct counting_iterator : rung_iterator<counting_iterator<T>, T> {
  T first{};
  __host__ __device__ explicit counting_iterator(T from = T{}) : first(from) {}
  __host__ __device__ T at(std::ptrdiff_t i) const { return static_cast<T>(first + i); }
  __host__ __device__ std::ptrdiff_t operator-(const counting_iterator& other) const {
    return (first - other.first) + (this->index - other.index);
  }
  using rung_iterator<counting_iterator<T>, T>::operator-;
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
};
template <class T>
__host__ __device__ constant_iterator<T> make_constant_iterator(T value) {
  return constant_iterator<T>(value);
}

/// Where an algorithm over such an iterator runs, and what it is there.
template <class Iterator>
struct rung_place {
  static constexpr bool on_device = false;
  typedef Iterator type;
  static type of(const Iterator& iterator) { return iterator; }
};
template <class T>
struct rung_place<device_ptr<T>> {
  static constexpr bool on_device = true;
  typedef T* type;
  static type of(const device_ptr<T>& iterator) { return iterator.get(); }
};
template <class Iterator>
using rung_there = typename rung_place<std::remove_cvref_t<Iterator>>::type;

template <class Function, class Base>
using rung_result = std::invoke_result_t<Function, decltype(*std::declval<rung_there<Base>>())>;

template <class Function, class Base, class = void, class = void>
struct transform_iterator
    : rung_iterator<transform_iterator<Function, Base>, rung_result<Function, Base>> {
  Base base;
  Function function;
  __host__ __device__ transform_iterator(Base of, Function by) : base(of), function(by) {}
  __host__ __device__ decltype(auto) at(std::ptrdiff_t i) const {
    return function(rung_place<Base>::of(base)[i]);
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

/// Runs the body where the policy or else the iterators say.
template <class... Iterators, class Policy, class Body>
void rung_run(const Policy& policy, Body body) {
  if constexpr (std::is_same_v<Policy, device_policy>) {
    rung::cuda::run_in_one_thread(policy.stream, body);
  } else if constexpr (!std::is_same_v<Policy, host_policy> &&
                       (rung_place<Iterators>::on_device || ...)) {
    rung::cuda::run_in_one_thread(nullptr, body);
  } else {
    body();
  }
}

/// A value that the body leaves for the host.
template <class T>
class rung_answer {
 public:
  explicit rung_answer(const T& initial) {
    if (cudaMallocManaged(&value_, sizeof(T)) != cudaSuccess) throw std::bad_alloc();
    new (value_) T(initial);
  }
  rung_answer(const rung_answer&) = delete;
  rung_answer& operator=(const rung_answer&) = delete;
  ~rung_answer() { cudaFree(value_); }
  [[nodiscard]] T* get() const { return value_; }
  const T& operator*() const { return *value_; }

 private:
  T* value_ = nullptr;
};

/// Where neither host nor device is named.
struct rung_anywhere {};
template <class T>
inline constexpr bool is_rung_policy = std::is_same_v<std::remove_cvref_t<T>, host_policy> ||
                                       std::is_same_v<std::remove_cvref_t<T>, device_policy>;

/// An algorithm, called with a policy in front of its arguments or without.
template <class Algorithm>
struct rung_algorithm {
  template <class First, class... Others>
  auto operator()(const First& first, const Others&... others) const {
    if constexpr (is_rung_policy<First>) {
      return Algorithm::run(first, others...);
    } else {
      return Algorithm::run(rung_anywhere{}, first, others...);
    }
  }
};

}  // namespace thrust
