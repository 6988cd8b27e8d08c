// SPDX-License-Identifier: Apache-2.0
// Further Thrust algorithms: searches, comparisons, variants with a stencil or keys, partitions.
#pragma once

#include "rung_cuda/thrust_sort.h"

namespace thrust {

/// Runs body(answer) on the system given by the policy or the iterators, and returns `answer`.
template <class... Iterators, class P, class T, class Body>
T rung_query(const P& policy, T initial, Body body) {
  rung_answer<T> answer(initial);
  rung_run<Iterators...>(policy, [=, to = answer.get()]() mutable { body(*to); });
  return *answer;
}

struct rung_scatter {
  template <class P, class In, class Map, class Out>
  static void run(const P& policy, In first, In last, Map map, Out out) {
    const auto n = last - first;
    rung_run<In, Map, Out>(
        policy, [=, in = rung_of(first), where = rung_of(map), to = rung_of(out)]() mutable {
          for (std::ptrdiff_t i = 0; i < n; ++i) to[where[i]] = in[i];
        });
  }
};
struct rung_scatter_if {
  template <class P, class In, class Map, class Stencil, class Out, class F = rung_same>
  static void run(const P& policy, In first, In last, Map map, Stencil stencil, Out out,
                  F predicate = {}) {
    const auto n = last - first;
    rung_run<In, Map, Stencil, Out>(policy, [=, in = rung_of(first), where = rung_of(map),
                                             by = rung_of(stencil), to = rung_of(out)]() mutable {
      for (std::ptrdiff_t i = 0; i < n; ++i) {
        if (predicate(by[i])) to[where[i]] = in[i];
      }
    });
  }
};
struct rung_gather_if {
  template <class P, class Map, class Stencil, class In, class Out, class F = rung_same>
  static Out run(const P& policy, Map first, Map last, Stencil stencil, In in, Out out,
                 F predicate = {}) {
    const auto n = last - first;
    rung_run<Map, Stencil, In, Out>(policy, [=, map = rung_of(first), by = rung_of(stencil),
                                             from = rung_of(in), to = rung_of(out)]() mutable {
      for (std::ptrdiff_t i = 0; i < n; ++i) {
        if (predicate(by[i])) to[i] = from[map[i]];
      }
    });
    return out + n;
  }
};
struct rung_tabulate {
  template <class P, class Out, class F>
  static void run(const P& policy, Out first, Out last, F function) {
    const auto n = last - first;
    rung_run<Out>(policy, [=, out = rung_of(first)]() mutable {
      for (std::ptrdiff_t i = 0; i < n; ++i) out[i] = function(i);
    });
  }
};
struct rung_transform_if {
  template <class P, class In, class Out, class F, class Choice>
  static Out run(const P& policy, In first, In last, Out out, F function, Choice predicate) {
    return run(policy, first, last, first, out, function, predicate);
  }
  template <class P, class In, class Stencil, class Out, class F, class Choice>
  static Out run(const P& policy, In first, In last, Stencil stencil, Out out, F function,
                 Choice predicate) {
    const auto n = last - first;
    rung_run<In, Stencil, Out>(
        policy, [=, in = rung_of(first), by = rung_of(stencil), to = rung_of(out)]() mutable {
          for (std::ptrdiff_t i = 0; i < n; ++i) {
            if (predicate(by[i])) to[i] = function(in[i]);
          }
        });
    return out + n;
  }
};
struct rung_replace_if {
  template <class P, class Out, class F, class T>
  static void run(const P& policy, Out first, Out last, F predicate, const T& value) {
    run(policy, first, last, first, predicate, value);
  }
  template <class P, class Out, class Stencil, class F, class T>
  static void run(const P& policy, Out first, Out last, Stencil stencil, F predicate,
                  const T& value) {
    rung_transform_if::run(
        policy, first, last, stencil, first, [=](const auto&) -> T { return value; }, predicate);
  }
};
struct rung_replace {
  template <class P, class Out, class T>
  static void run(const P& policy, Out first, Out last, const T& old, const T& value) {
    rung_replace_if::run(
        policy, first, last, [=](const rung_value<Out>& here) { return here == old; }, value);
  }
};
template <bool inclusive>
struct rung_transform_scan {
  template <class P, class In, class Out, class F, class Op>
  static Out run(const P& policy, In first, In last, Out out, F function, Op operation) {
    const auto from = make_transform_iterator(first, function);
    return rung_inclusive_scan::run(policy, from, from + (last - first), out, operation);
  }
  template <class P, class In, class Out, class F, class T, class Op>
  static Out run(const P& policy, In first, In last, Out out, F function, T initial, Op operation) {
    const auto from = make_transform_iterator(first, function);
    return rung_exclusive_scan::run(policy, from, from + (last - first), out, initial, operation);
  }
};
/// Scan that restarts when the key changes.
struct rung_inclusive_scan_by_key {
  template <class P, class Keys, class In, class Out, class Equal = std::equal_to<>,
            class Op = std::plus<>>
  static Out run(const P& policy, Keys first, Keys last, In values, Out out, Equal equal = {},
                 Op operation = {}) {
    const auto n = last - first;
    rung_run<Keys, In, Out>(
        policy, [=, keys = rung_of(first), in = rung_of(values), to = rung_of(out)]() mutable {
          rung_value<In> sum{};
          for (std::ptrdiff_t i = 0; i < n; ++i) {
            const bool goes_on = i > 0 && equal(keys[i - 1], keys[i]);
            sum = goes_on ? rung_value<In>(operation(sum, in[i])) : rung_value<In>(in[i]);
            to[i] = sum;
          }
        });
    return out + n;
  }
};
struct rung_exclusive_scan_by_key {
  template <class P, class Keys, class In, class Out, class T = rung_value<In>,
            class Equal = std::equal_to<>, class Op = std::plus<>>
  static Out run(const P& policy, Keys first, Keys last, In values, Out out, T initial = T{},
                 Equal equal = {}, Op operation = {}) {
    const auto n = last - first;
    rung_run<Keys, In, Out>(
        policy, [=, keys = rung_of(first), in = rung_of(values), to = rung_of(out)]() mutable {
          T sum = initial;
          for (std::ptrdiff_t i = 0; i < n; ++i) {
            if (i > 0 && !equal(keys[i - 1], keys[i])) sum = initial;
            const T next = operation(sum, in[i]);  // the output may alias the input
            to[i] = sum;
            sum = next;
          }
        });
    return out + n;
  }
};

/// Finds the first element for which the predicate equals `wanted`.
template <bool wanted>
struct rung_find_if {
  template <class P, class In, class F>
  static In run(const P& policy, In first, In last, F predicate) {
    const std::ptrdiff_t n = last - first;
    return first + rung_query<In>(policy, n, [=, in = rung_of(first)](std::ptrdiff_t& at) {
             for (std::ptrdiff_t i = 0; i < n; ++i) {
               if (static_cast<bool>(predicate(in[i])) == wanted) {
                 at = i;
                 break;
               }
             }
           });
  }
};
struct rung_find {
  template <class P, class In, class T>
  static In run(const P& policy, In first, In last, const T& value) {
    return rung_find_if<true>::run(policy, first, last,
                                   [=](const rung_value<In>& here) { return here == value; });
  }
};
template <bool wanted, bool if_found>
struct rung_any {
  template <class P, class In, class F>
  static bool run(const P& policy, In first, In last, F predicate) {
    const bool found = !(rung_find_if<wanted>::run(policy, first, last, predicate) == last);
    return found == if_found;
  }
};
struct rung_mismatch {
  template <class P, class In, class In2, class Equal = std::equal_to<>>
  static pair<In, In2> run(const P& policy, In first, In last, In2 second, Equal equal = {}) {
    const std::ptrdiff_t n = last - first;
    const auto same = rung_query<In, In2>(
        policy, n, [=, a = rung_of(first), b = rung_of(second)](std::ptrdiff_t& at) {
          for (std::ptrdiff_t i = n - 1; i >= 0; --i) {
            if (!equal(a[i], b[i])) at = i;
          }
        });
    return {first + same, second + same};
  }
};
struct rung_equal {
  template <class P, class In, class In2, class Equal = std::equal_to<>>
  static bool run(const P& policy, In first, In last, In2 second, Equal equal = {}) {
    return rung_mismatch::run(policy, first, last, second, equal).first == last;
  }
};
struct rung_minmax_element {
  template <class P, class In, class Less = std::less<>>
  static pair<In, In> run(const P& policy, In first, In last, Less less = {}) {
    return {rung_extreme<false>::run(policy, first, last, less),
            rung_extreme<true>::run(policy, first, last, less)};
  }
};
struct rung_reverse {
  template <class P, class In>
  static void run(const P& policy, In first, In last) {
    const auto n = last - first;
    rung_run<In>(policy, [=, in = rung_of(first)]() mutable {
      for (std::ptrdiff_t i = 0; i < n / 2; ++i) {
        const rung_value<In> here = in[i];
        in[i] = rung_value<In>(in[n - 1 - i]);
        in[n - 1 - i] = here;
      }
    });
  }
};
struct rung_swap_ranges {
  template <class P, class In, class In2>
  static In2 run(const P& policy, In first, In last, In2 second) {
    const auto n = last - first;
    rung_run<In, In2>(policy, [=, a = rung_of(first), b = rung_of(second)]() mutable {
      for (std::ptrdiff_t i = 0; i < n; ++i) {
        const rung_value<In> here = a[i];
        a[i] = rung_value<In2>(b[i]);
        b[i] = here;
      }
    });
    return second + n;
  }
};
/// Moves elements that satisfy the predicate to the front, stably; returns the end of the front
/// part.
struct rung_partition {
  template <class P, class In, class F>
  static In run(const P& policy, In first, In last, F predicate) {
    return run(policy, first, last, first, predicate);
  }
  template <class P, class In, class Stencil, class F>
  static In run(const P& policy, In first, In last, Stencil stencil, F predicate) {
    const auto n = last - first;
    const rung_scratch<rung_value<In>> scratch(n);
    return first + rung_query<In, Stencil>(policy, std::ptrdiff_t{0},
                                           [=, in = rung_of(first), by = rung_of(stencil),
                                            others = scratch.memory](std::ptrdiff_t& kept) mutable {
                                             std::ptrdiff_t left = 0;
                                             for (std::ptrdiff_t i = 0; i < n; ++i) {
                                               const rung_value<In> here = in[i];
                                               if (predicate(by[i])) {
                                                 in[kept++] = here;
                                               } else {
                                                 others[left++] = here;
                                               }
                                             }
                                             for (std::ptrdiff_t i = 0; i < left; ++i)
                                               in[kept + i] = others[i];
                                           });
  }
};

inline constexpr rung_algorithm<rung_scatter> scatter;
inline constexpr rung_algorithm<rung_scatter_if> scatter_if;
inline constexpr rung_algorithm<rung_gather_if> gather_if;
inline constexpr rung_algorithm<rung_tabulate> tabulate;
inline constexpr rung_algorithm<rung_transform_if> transform_if;
inline constexpr rung_algorithm<rung_replace> replace;
inline constexpr rung_algorithm<rung_replace_if> replace_if;
inline constexpr rung_algorithm<rung_transform_scan<true>> transform_inclusive_scan;
inline constexpr rung_algorithm<rung_transform_scan<false>> transform_exclusive_scan;
inline constexpr rung_algorithm<rung_inclusive_scan_by_key> inclusive_scan_by_key;
inline constexpr rung_algorithm<rung_exclusive_scan_by_key> exclusive_scan_by_key;
inline constexpr rung_algorithm<rung_find> find;
inline constexpr rung_algorithm<rung_find_if<true>> find_if;
inline constexpr rung_algorithm<rung_find_if<false>> find_if_not;
inline constexpr rung_algorithm<rung_any<true, true>> any_of;
inline constexpr rung_algorithm<rung_any<true, false>> none_of;
inline constexpr rung_algorithm<rung_any<false, false>> all_of;
inline constexpr rung_algorithm<rung_mismatch> mismatch;
inline constexpr rung_algorithm<rung_equal> equal;
inline constexpr rung_algorithm<rung_minmax_element> minmax_element;
inline constexpr rung_algorithm<rung_reverse> reverse;
inline constexpr rung_algorithm<rung_swap_ranges> swap_ranges;
inline constexpr rung_algorithm<rung_partition> partition;
inline constexpr rung_algorithm<rung_partition> stable_partition;

}  // namespace thrust
