// SPDX-License-Identifier: Apache-2.0
// Thrust's algorithms, each as a sequential loop.
#pragma once

#include "rung_cuda/thrust_fancy.h"

namespace thrust {

template <class Iterator>
auto rung_of(const Iterator& iterator) {
  return rung_place<Iterator>::of(iterator);
}

struct rung_for_each {
  template <class P, class In, class F>
  static In run(const P& policy, In first, In last, F function) {
    const auto n = last - first;
    rung_run<In>(policy, [=, in = rung_of(first)]() mutable {
      for (std::ptrdiff_t i = 0; i < n; ++i) function(in[i]);
    });
    return last;
  }
};
struct rung_fill {
  template <class P, class Out, class T>
  static void run(const P& policy, Out first, Out last, const T& value) {
    const auto n = last - first;
    rung_run<Out>(policy, [=, out = rung_of(first)]() mutable {
      for (std::ptrdiff_t i = 0; i < n; ++i) out[i] = static_cast<rung_value<Out>>(value);
    });
  }
};
struct rung_sequence {
  template <class P, class Out, class T = rung_value<Out>>
  static void run(const P& policy, Out first, Out last, T from = T{}, T step = T{1}) {
    const auto n = last - first;
    rung_run<Out>(policy, [=, out = rung_of(first)]() mutable {
      for (std::ptrdiff_t i = 0; i < n; ++i) out[i] = static_cast<T>(from + i * step);
    });
  }
};
struct rung_generate {  // runs on the host, as most generators are host functions
  template <class P, class Out, class F>
  static void run(const P&, Out first, Out last, F function) {
    for (; !(first == last); ++first) *first = function();
  }
};
struct rung_copy {
  template <class P, class In, class Out>
  static Out run(const P& policy, In first, In last, Out out) {
    const auto n = last - first;
    constexpr bool from_device = rung_place<In>::on_device, to_device = rung_place<Out>::on_device;
    if constexpr (from_device != to_device && std::is_same_v<P, rung_anywhere>) {
      for (std::ptrdiff_t i = 0; i < n; ++i, ++out) *out = static_cast<rung_value<In>>(first[i]);
      return out;
    } else {
      rung_run<In, Out>(policy, [=, in = rung_of(first), to = rung_of(out)]() mutable {
        for (std::ptrdiff_t i = 0; i < n; ++i) to[i] = in[i];
      });
      return out + n;
    }
  }
};
struct rung_transform {
  template <class P, class In, class Out, class F>
  static Out run(const P& policy, In first, In last, Out out, F function) {
    const auto n = last - first;
    rung_run<In, Out>(policy, [=, in = rung_of(first), to = rung_of(out)]() mutable {
      for (std::ptrdiff_t i = 0; i < n; ++i) to[i] = function(in[i]);
    });
    return out + n;
  }
  template <class P, class In, class In2, class Out, class F>
  static Out run(const P& policy, In first, In last, In2 second, Out out, F function) {
    const auto n = last - first;
    rung_run<In, In2, Out>(
        policy, [=, a = rung_of(first), b = rung_of(second), to = rung_of(out)]() mutable {
          for (std::ptrdiff_t i = 0; i < n; ++i) to[i] = function(a[i], b[i]);
        });
    return out + n;
  }
};
struct rung_transform_reduce {
  template <class P, class In, class F, class T, class Op>
  static T run(const P& policy, In first, In last, F function, T initial, Op operation) {
    const auto n = last - first;
    rung_answer<T> answer(initial);
    rung_run<In>(policy, [=, in = rung_of(first), to = answer.get()]() mutable {
      T sum = initial;
      for (std::ptrdiff_t i = 0; i < n; ++i) sum = operation(sum, function(in[i]));
      *to = sum;
    });
    return *answer;
  }
};
struct rung_same {
  template <class T>
  __host__ __device__ const T& operator()(const T& value) const {
    return value;
  }
};
struct rung_reduce {
  template <class P, class In>
  static auto run(const P& policy, In first, In last) {
    return run(policy, first, last, rung_value<In>{}, std::plus<>{});
  }
  template <class P, class In, class T, class Op = std::plus<>>
  static T run(const P& policy, In first, In last, T initial, Op operation = {}) {
    return rung_transform_reduce::run(policy, first, last, rung_same{}, initial, operation);
  }
};
struct rung_inner_product {
  template <class P, class In, class In2, class T, class Op = std::plus<>,
            class Product = std::multiplies<>>
  static T run(const P& policy, In first, In last, In2 second, T initial, Op operation = {},
               Product product = {}) {
    const auto n = last - first;
    rung_answer<T> answer(initial);
    rung_run<In, In2>(policy,
                      [=, a = rung_of(first), b = rung_of(second), to = answer.get()]() mutable {
                        T sum = initial;
                        for (std::ptrdiff_t i = 0; i < n; ++i)
                          sum = operation(sum, product(a[i], b[i]));
                        *to = sum;
                      });
    return *answer;
  }
};
struct rung_inclusive_scan {
  template <class P, class In, class Out, class Op = std::plus<>>
  static Out run(const P& policy, In first, In last, Out out, Op operation = {}) {
    const auto n = last - first;
    rung_run<In, Out>(policy, [=, in = rung_of(first), to = rung_of(out)]() mutable {
      rung_value<In> sum{};
      for (std::ptrdiff_t i = 0; i < n; ++i) {
        sum = i == 0 ? rung_value<In>(in[i]) : operation(sum, in[i]);
        to[i] = sum;
      }
    });
    return out + n;
  }
};
struct rung_exclusive_scan {
  template <class P, class In, class Out, class T = rung_value<In>, class Op = std::plus<>>
  static Out run(const P& policy, In first, In last, Out out, T initial = T{}, Op operation = {}) {
    const auto n = last - first;
    rung_run<In, Out>(policy, [=, in = rung_of(first), to = rung_of(out)]() mutable {
      T sum = initial;
      for (std::ptrdiff_t i = 0; i < n; ++i) {
        const T next = operation(sum, in[i]);  // the output may alias the input
        to[i] = sum;
        sum = next;
      }
    });
    return out + n;
  }
};
struct rung_count_if {
  template <class P, class In, class F>
  static std::ptrdiff_t run(const P& policy, In first, In last, F predicate) {
    return rung_transform_reduce::run(
        policy, first, last,
        [=](const rung_value<In>& value) mutable -> std::ptrdiff_t {
          return predicate(value) ? 1 : 0;
        },
        std::ptrdiff_t{0}, std::plus<>{});
  }
};
struct rung_count {
  template <class P, class In, class T>
  static std::ptrdiff_t run(const P& policy, In first, In last, const T& wanted) {
    return rung_count_if::run(policy, first, last,
                              [=](const rung_value<In>& value) { return value == wanted; });
  }
};
template <bool largest>
struct rung_extreme {
  template <class P, class In, class Less = std::less<>>
  static In run(const P& policy, In first, In last, Less less = {}) {
    const auto n = last - first;
    rung_answer<std::ptrdiff_t> answer(0);
    rung_run<In>(policy, [=, in = rung_of(first), to = answer.get()]() mutable {
      std::ptrdiff_t best = 0;
      for (std::ptrdiff_t i = 1; i < n; ++i) {
        if (largest ? less(in[best], in[i]) : less(in[i], in[best])) best = i;
      }
      *to = best;
    });
    return n == 0 ? last : first + *answer;
  }
};
struct rung_copy_if {
  template <class P, class In, class Out, class F>
  static Out run(const P& policy, In first, In last, Out out, F predicate) {
    return run(policy, first, last, first, out, predicate);
  }
  template <class P, class In, class Stencil, class Out, class F>
  static Out run(const P& policy, In first, In last, Stencil stencil, Out out, F predicate) {
    const auto n = last - first;
    rung_answer<std::ptrdiff_t> answer(0);
    rung_run<In, Stencil, Out>(policy, [=, in = rung_of(first), by = rung_of(stencil),
                                        to = rung_of(out), kept = answer.get()]() mutable {
      std::ptrdiff_t count = 0;
      for (std::ptrdiff_t i = 0; i < n; ++i) {
        if (predicate(by[i])) to[count++] = in[i];
      }
      *kept = count;
    });
    return out + *answer;
  }
};
struct rung_remove_if {
  template <class P, class In, class F>
  static In run(const P& policy, In first, In last, F predicate) {
    return run(policy, first, last, first, predicate);
  }
  template <class P, class In, class Stencil, class F>
  static In run(const P& policy, In first, In last, Stencil stencil, F predicate) {
    return rung_copy_if::run(
        policy, first, last, stencil, first,
        [=](const rung_value<Stencil>& value) mutable { return !predicate(value); });
  }
};
struct rung_unique {
  template <class P, class In, class Equal = std::equal_to<>>
  static In run(const P& policy, In first, In last, Equal equal = {}) {
    const auto n = last - first;
    rung_answer<std::ptrdiff_t> answer(0);
    rung_run<In>(policy, [=, in = rung_of(first), kept = answer.get()]() mutable {
      std::ptrdiff_t count = 0;
      for (std::ptrdiff_t i = 0; i < n; ++i) {
        if (count == 0 || !equal(in[count - 1], in[i])) in[count++] = in[i];
      }
      *kept = count;
    });
    return first + *answer;
  }
};
struct rung_gather {
  template <class P, class Map, class In, class Out>
  static Out run(const P& policy, Map first, Map last, In in, Out out) {
    const auto n = last - first;
    rung_run<Map, In, Out>(
        policy, [=, map = rung_of(first), from = rung_of(in), to = rung_of(out)]() mutable {
          for (std::ptrdiff_t i = 0; i < n; ++i) to[i] = from[map[i]];
        });
    return out + n;
  }
};

struct rung_adjacent_difference {
  template <class P, class In, class Out, class Op = std::minus<>>
  static Out run(const P& policy, In first, In last, Out out, Op operation = {}) {
    const auto n = last - first;
    rung_run<In, Out>(policy, [=, in = rung_of(first), to = rung_of(out)]() mutable {
      rung_value<In> before{};
      for (std::ptrdiff_t i = 0; i < n; ++i) {
        const rung_value<In> here = in[i];  // the output may alias the input
        to[i] = i == 0 ? here : operation(here, before);
        before = here;
      }
    });
    return out + n;
  }
};
inline constexpr rung_algorithm<rung_for_each> for_each;
inline constexpr rung_algorithm<rung_adjacent_difference> adjacent_difference;
inline constexpr rung_algorithm<rung_fill> fill;
inline constexpr rung_algorithm<rung_sequence> sequence;
inline constexpr rung_algorithm<rung_generate> generate;
inline constexpr rung_algorithm<rung_copy> copy;
inline constexpr rung_algorithm<rung_transform> transform;
inline constexpr rung_algorithm<rung_transform_reduce> transform_reduce;
inline constexpr rung_algorithm<rung_reduce> reduce;
inline constexpr rung_algorithm<rung_inner_product> inner_product;
inline constexpr rung_algorithm<rung_inclusive_scan> inclusive_scan;
inline constexpr rung_algorithm<rung_exclusive_scan> exclusive_scan;
inline constexpr rung_algorithm<rung_count> count;
inline constexpr rung_algorithm<rung_count_if> count_if;
inline constexpr rung_algorithm<rung_extreme<true>> max_element;
inline constexpr rung_algorithm<rung_extreme<false>> min_element;
inline constexpr rung_algorithm<rung_copy_if> copy_if;
inline constexpr rung_algorithm<rung_remove_if> remove_if;
inline constexpr rung_algorithm<rung_unique> unique;
inline constexpr rung_algorithm<rung_gather> gather;

}  // namespace thrust
