// SPDX-License-Identifier: Apache-2.0
// Thrust's function objects and execution policies, and the choice of host or device by iterator
// type.
#pragma once

#include <algorithm>
#include <functional>
#include <iostream>
#include <limits>
#include <random>
#include <tuple>
#include <utility>

#include "rung_cuda/thrust_memory.h"

// Thrust's version in CUDA 13.
#define THRUST_VERSION 300000
#define THRUST_MAJOR_VERSION 3
#define THRUST_MINOR_VERSION 0
#define THRUST_SUBMINOR_VERSION 0
#define THRUST_HOST_DEVICE __host__ __device__
#define THRUST_DEVICE __device__
#define THRUST_HOST __host__

namespace thrust {

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
using std::minstd_rand;
using std::minstd_rand0;
using std::minus;
using std::modulus;
using std::multiplies;
using std::negate;
using std::normal_distribution;
using std::not_equal_to;
using std::pair;
using std::plus;
using std::swap;
using std::tie;
using std::tuple;
using std::uniform_int_distribution;
using std::uniform_real_distribution;

typedef std::minstd_rand default_random_engine;  // the same generator as in Thrust
namespace random {
using std::minstd_rand;
using std::minstd_rand0;
using std::normal_distribution;
using std::uniform_int_distribution;
using std::uniform_real_distribution;
typedef std::minstd_rand default_random_engine;
}  // namespace random

template <class Iterator>
struct iterator_difference {
  typedef typename std::iterator_traits<Iterator>::difference_type type;
};
template <class Iterator>
struct iterator_value {
  typedef typename std::iterator_traits<Iterator>::value_type type;
};
template <class Iterator>
struct iterator_reference {
  typedef typename std::iterator_traits<Iterator>::reference type;
};
template <class Iterator>
struct iterator_pointer {
  typedef typename std::iterator_traits<Iterator>::pointer type;
};
template <class Iterator>
using iterator_traits = std::iterator_traits<Iterator>;

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
  /// Events and futures are ready when they are returned (thrust_async.h).
  template <class... Events>
  [[nodiscard]] device_policy after(Events&&...) const {
    return *this;
  }
};
inline constexpr host_policy host;
inline constexpr host_policy seq;
inline constexpr device_policy device;
namespace cuda {
inline constexpr device_policy par;
inline constexpr device_policy par_nosync;
}  // namespace cuda

/// System (host or device) for algorithms over this iterator, and the iterator's form on this
/// system.
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

/// Runs the body on the system given by the policy or, without a policy, by the iterators.
template <class... Iterators, class Policy, class Body>
void rung_run(const Policy& policy, Body body) {
  if constexpr (std::is_same_v<Policy, device_policy>) {
    rung::cuda::run_in_one_thread(policy.stream, body);
    cudaStreamSynchronize(policy.stream);
  } else if constexpr (!std::is_same_v<Policy, host_policy> &&
                       (rung_place<Iterators>::on_device || ...)) {
    rung::cuda::run_in_one_thread(nullptr, body);
    cudaStreamSynchronize(nullptr);
  } else {
    body();
  }
}

/// A result that the body returns to the host, in managed memory.
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

/// Placeholder for an omitted policy: the iterators determine the system.
struct rung_anywhere {};
template <class T>
inline constexpr bool is_rung_policy = std::is_same_v<std::remove_cvref_t<T>, host_policy> ||
                                       std::is_same_v<std::remove_cvref_t<T>, device_policy>;

/// Callable algorithm, with an optional policy as first argument.
template <class Algorithm>
struct rung_algorithm {
  template <class First, class... Others>
  // Parameters are taken by value, so that arrays decay to pointers.
  auto operator()(First first, Others... others) const {
    if constexpr (is_rung_policy<First>) {
      return Algorithm::run(first, others...);
    } else {
      return Algorithm::run(rung_anywhere{}, first, others...);
    }
  }
};

}  // namespace thrust
