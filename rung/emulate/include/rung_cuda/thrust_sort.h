// SPDX-License-Identifier: Apache-2.0
// Thrust's searches and sorts. Sorts are stable, bottom-up merge sorts.
#pragma once

#include "rung_cuda/thrust_algorithms.h"

namespace thrust {

/// Sorts `keys` by bottom-up merging, using the buffer `keys_2`, and moves the values with the keys
/// unless they are null.
template <class Keys, class Key, class Values, class Value, class Less>
__host__ __device__ void rung_merge_sort(Keys keys, Key* keys_2, Values values, Value* values_2,
                                         std::ptrdiff_t n, Less less) {
  constexpr bool pairs = !std::is_same_v<Values, std::nullptr_t>;
  for (std::ptrdiff_t run = 1; run < n; run *= 2) {
    for (std::ptrdiff_t begin = 0; begin < n; begin += 2 * run) {
      const std::ptrdiff_t middle = begin + run < n ? begin + run : n;
      const std::ptrdiff_t end = middle + run < n ? middle + run : n;
      std::ptrdiff_t a = begin, b = middle;
      for (std::ptrdiff_t to = begin; to < end; ++to) {
        const std::ptrdiff_t from = b >= end || (a < middle && !less(keys[b], keys[a])) ? a++ : b++;
        keys_2[to] = keys[from];
        if constexpr (pairs) values_2[to] = values[from];
      }
    }
    for (std::ptrdiff_t i = 0; i < n; ++i) {
      keys[i] = keys_2[i];
      if constexpr (pairs) values[i] = values_2[i];
    }
  }
}

/// Temporary memory accessible to host and device.
template <class T>
struct rung_scratch {
  T* memory = nullptr;
  explicit rung_scratch(std::ptrdiff_t n) {
    const auto bytes = static_cast<std::size_t>(n) * sizeof(T) + 1;
    if (cudaMallocManaged(&memory, bytes) != cudaSuccess) throw std::bad_alloc();
  }
  rung_scratch(const rung_scratch&) = delete;
  rung_scratch& operator=(const rung_scratch&) = delete;
  ~rung_scratch() { cudaFree(memory); }
};

struct rung_sort {
  template <class P, class Keys, class Less = std::less<>>
  static void run(const P& policy, Keys first, Keys last, Less less = {}) {
    const auto n = last - first;
    const rung_scratch<rung_value<Keys>> scratch(n);
    rung_run<Keys>(policy, [=, keys = rung_of(first), other = scratch.memory]() mutable {
      rung_merge_sort(keys, other, nullptr, static_cast<char*>(nullptr), n, less);
    });
  }
};
struct rung_sort_by_key {
  template <class P, class Keys, class Values, class Less = std::less<>>
  static void run(const P& policy, Keys first, Keys last, Values values, Less less = {}) {
    const auto n = last - first;
    const rung_scratch<rung_value<Keys>> scratch(n);
    const rung_scratch<rung_value<Values>> scratch_values(n);
    rung_run<Keys, Values>(
        policy, [=, keys = rung_of(first), of_keys = rung_of(values), other = scratch.memory,
                 others = scratch_values.memory]() mutable {
          rung_merge_sort(keys, other, of_keys, others, n, less);
        });
  }
};
struct rung_is_sorted {
  template <class P, class Keys, class Less = std::less<>>
  static bool run(const P& policy, Keys first, Keys last, Less less = {}) {
    const auto n = last - first;
    rung_answer<bool> answer(true);
    rung_run<Keys>(policy, [=, keys = rung_of(first), to = answer.get()]() mutable {
      for (std::ptrdiff_t i = 1; i < n; ++i) {
        if (less(keys[i], keys[i - 1])) *to = false;
      }
    });
    return *answer;
  }
};
/// Reduces values with equal consecutive keys.
struct rung_reduce_by_key {
  template <class P, class Keys, class Values, class OutKeys, class OutValues,
            class Equal = std::equal_to<>, class Op = std::plus<>>
  static pair<OutKeys, OutValues> run(const P& policy, Keys first, Keys last, Values values,
                                      OutKeys out_keys, OutValues out_values, Equal equal = {},
                                      Op operation = {}) {
    const auto n = last - first;
    rung_answer<std::ptrdiff_t> answer(0);
    rung_run<Keys, Values, OutKeys, OutValues>(
        policy, [=, keys = rung_of(first), of_keys = rung_of(values), to = rung_of(out_keys),
                 sums = rung_of(out_values), found = answer.get()]() mutable {
          std::ptrdiff_t runs = 0;
          rung_value<Values> sum{};
          for (std::ptrdiff_t i = 0; i < n; ++i) {
            if (i == 0 || !equal(keys[i - 1], keys[i])) {
              to[runs++] = keys[i];
              sum = of_keys[i];
            } else {
              sum = operation(sum, of_keys[i]);
            }
            sums[runs - 1] = sum;
          }
          *found = runs;
        });
    return {out_keys + *answer, out_values + *answer};
  }
};

/// Counts, for each value, the elements of a sorted range that precede it or, if `with_equal`, that
/// precede or equal it.
template <bool with_equal>
struct rung_bound {
  template <class P, class In, class Values, class Out, class Less = std::less<>>
  static Out run(const P& policy, In first, In last, Values values, Values values_last, Out out,
                 Less less = {}) {
    const auto n = last - first;
    const auto count = values_last - values;
    rung_run<In, Values, Out>(
        policy, [=, in = rung_of(first), of = rung_of(values), to = rung_of(out)]() mutable {
          for (std::ptrdiff_t i = 0; i < count; ++i) {
            std::ptrdiff_t low = 0, high = n;
            while (low < high) {
              const std::ptrdiff_t middle = (low + high) / 2;
              const bool before = with_equal ? !less(of[i], in[middle]) : less(in[middle], of[i]);
              (before ? low : high) = before ? middle + 1 : middle;
            }
            to[i] = static_cast<rung_value<Out>>(low);
          }
        });
    return out + count;
  }
};

inline constexpr rung_algorithm<rung_sort> sort;
inline constexpr rung_algorithm<rung_sort> stable_sort;
inline constexpr rung_algorithm<rung_sort_by_key> sort_by_key;
inline constexpr rung_algorithm<rung_sort_by_key> stable_sort_by_key;
inline constexpr rung_algorithm<rung_is_sorted> is_sorted;
inline constexpr rung_algorithm<rung_reduce_by_key> reduce_by_key;
inline constexpr rung_algorithm<rung_bound<false>> lower_bound;
inline constexpr rung_algorithm<rung_bound<true>> upper_bound;

}  // namespace thrust
