// SPDX-License-Identifier: Apache-2.0
// Thrust's set operations, counted variants, filtering copies, and placeholders.
#pragma once

#include "rung_cuda/thrust_ranges.h"

namespace thrust {

/// Merges sorted ranges, matching equal elements one to one. The flags select the output: elements
/// only in the first range, only in the second, and in both (taken from the first range or, with
/// `second_of_both`, also from the second).
template <bool of_first, bool of_second, bool of_both, bool second_of_both = false>
struct rung_merge {
  template <class P, class In, class In2, class Out, class Less = std::less<>>
  static Out run(const P& policy, In first, In last, In2 second, In2 second_last, Out out,
                 Less less = {}) {
    const std::ptrdiff_t n = last - first, m = second_last - second;
    return out + rung_query<In, In2, Out>(policy, std::ptrdiff_t{0},
                                          [=, a = rung_of(first), b = rung_of(second),
                                           to = rung_of(out)](std::ptrdiff_t& count) mutable {
                                            std::ptrdiff_t i = 0, j = 0;
                                            while (i < n || j < m) {
                                              if (j == m || (i < n && less(a[i], b[j]))) {
                                                if (of_first) to[count++] = a[i];
                                                ++i;
                                              } else if (i == n || less(b[j], a[i])) {
                                                if (of_second) to[count++] = b[j];
                                                ++j;
                                              } else {
                                                if (of_both) to[count++] = a[i];
                                                if (!second_of_both) ++j;
                                                ++i;
                                              }
                                            }
                                          });
  }
};

struct rung_unique_copy {
  template <class P, class In, class Out, class Equal = std::equal_to<>>
  static Out run(const P& policy, In first, In last, Out out, Equal equal = {}) {
    const std::ptrdiff_t n = last - first;
    return out + rung_query<In, Out>(
                     policy, std::ptrdiff_t{0},
                     [=, in = rung_of(first), to = rung_of(out)](std::ptrdiff_t& count) mutable {
                       for (std::ptrdiff_t i = 0; i < n; ++i) {
                         if (i == 0 || !equal(in[i - 1], in[i])) to[count++] = in[i];
                       }
                     });
  }
};
struct rung_unique_by_key {
  template <class P, class Keys, class Values, class Equal = std::equal_to<>>
  static pair<Keys, Values> run(const P& policy, Keys first, Keys last, Values values,
                                Equal equal = {}) {
    const std::ptrdiff_t n = last - first;
    const auto kept = rung_query<Keys, Values>(
        policy, std::ptrdiff_t{0},
        [=, keys = rung_of(first), of_keys = rung_of(values)](std::ptrdiff_t& count) mutable {
          for (std::ptrdiff_t i = 0; i < n; ++i) {
            if (count > 0 && equal(keys[count - 1], keys[i])) continue;
            keys[count] = keys[i];
            of_keys[count++] = of_keys[i];
          }
        });
    return {first + kept, values + kept};
  }
};
struct rung_unique_by_key_copy {
  template <class P, class Keys, class Values, class OutKeys, class OutValues,
            class Equal = std::equal_to<>>
  static pair<OutKeys, OutValues> run(const P& policy, Keys first, Keys last, Values values,
                                      OutKeys out_keys, OutValues out_values, Equal equal = {}) {
    const auto one_of_each = [](const auto& sum, const auto&) { return sum; };
    return rung_reduce_by_key::run(policy, first, last, values, out_keys, out_values, equal,
                                   one_of_each);
  }
};
struct rung_remove_copy_if {
  template <class P, class In, class Out, class F>
  static Out run(const P& policy, In first, In last, Out out, F predicate) {
    return rung_copy_if::run(policy, first, last, out, [=](const rung_value<In>& value) mutable {
      return !predicate(value);
    });
  }
};
struct rung_remove {
  template <class P, class In, class T>
  static In run(const P& policy, In first, In last, const T& value) {
    return rung_remove_if::run(policy, first, last,
                               [=](const rung_value<In>& here) { return here == value; });
  }
};
struct rung_partition_copy {
  template <class P, class In, class Out, class Others, class F>
  static pair<Out, Others> run(const P& policy, In first, In last, Out out, Others others,
                               F predicate) {
    return {rung_copy_if::run(policy, first, last, out, predicate),
            rung_remove_copy_if::run(policy, first, last, others, predicate)};
  }
};

/// Variant of an algorithm that takes a count instead of an end iterator.
template <class Algorithm>
struct rung_counted {
  template <class P, class In, class N, class... Others>
  static auto run(const P& policy, In first, N n, const Others&... others) {
    Algorithm::run(policy, first, first + n, others...);
    return first + n;
  }
};
struct rung_copy_n {
  template <class P, class In, class N, class Out>
  static Out run(const P& policy, In first, N n, Out out) {
    return rung_copy::run(policy, first, first + n, out);
  }
};

inline constexpr rung_algorithm<rung_merge<true, true, true, true>> merge;
inline constexpr rung_algorithm<rung_merge<true, true, true>> set_union;
inline constexpr rung_algorithm<rung_merge<false, false, true>> set_intersection;
inline constexpr rung_algorithm<rung_merge<true, false, false>> set_difference;
inline constexpr rung_algorithm<rung_merge<true, true, false>> set_symmetric_difference;
inline constexpr rung_algorithm<rung_unique_copy> unique_copy;
inline constexpr rung_algorithm<rung_unique_by_key> unique_by_key;
inline constexpr rung_algorithm<rung_unique_by_key_copy> unique_by_key_copy;
inline constexpr rung_algorithm<rung_remove> remove;
inline constexpr rung_algorithm<rung_remove_copy_if> remove_copy_if;
inline constexpr rung_algorithm<rung_partition_copy> partition_copy;
inline constexpr rung_algorithm<rung_counted<rung_fill>> fill_n;
inline constexpr rung_algorithm<rung_counted<rung_generate>> generate_n;
inline constexpr rung_algorithm<rung_counted<rung_for_each>> for_each_n;
inline constexpr rung_algorithm<rung_copy_n> copy_n;
inline constexpr rung_algorithm<rung_fill> uninitialized_fill;
inline constexpr rung_algorithm<rung_copy> uninitialized_copy;

template <class Iterator>
std::ptrdiff_t distance(Iterator first, Iterator last) {
  return last - first;
}
template <class Iterator>
void advance(Iterator& iterator, std::ptrdiff_t n) {
  iterator += n;
}

/// Function object for a placeholder expression such as `_1 * 2 + _2`.
template <class Function>
struct rung_expression {
  Function function;
  template <class... Arguments>
  __host__ __device__ auto operator()(const Arguments&... arguments) const {
    return function(arguments...);
  }
};
template <class Function>
rung_expression(Function) -> rung_expression<Function>;
template <class T>
inline constexpr bool is_rung_expression = false;
template <class Function>
inline constexpr bool is_rung_expression<rung_expression<Function>> = true;
template <class T, class... Arguments>
__host__ __device__ auto rung_value_of(const T& part, const Arguments&... arguments) {
  if constexpr (is_rung_expression<T>) {
    return part(arguments...);
  } else {
    return part;
  }
}
template <std::size_t i>
struct rung_argument {
  template <class... Arguments>
  __host__ __device__ auto operator()(const Arguments&... arguments) const {
    return std::get<i>(std::tuple<const Arguments&...>(arguments...));
  }
};
template <class Op, class A, class B>
struct rung_binary {
  A a;
  B b;
  template <class... Arguments>
  __host__ __device__ auto operator()(const Arguments&... arguments) const {
    return Op{}(rung_value_of(a, arguments...), rung_value_of(b, arguments...));
  }
};
template <class A, class B>
concept rung_of_expression = is_rung_expression<A> || is_rung_expression<B>;

#define RUNG_PLACEHOLDER_OPERATOR(sign, Op)                                                        \
  template <class A, class B>                                                                      \
  requires rung_of_expression<A, B> __host__ __device__ constexpr auto operator sign(const A& a,   \
                                                                                     const B& b) { \
    return rung_expression<rung_binary<Op, A, B>>{{a, b}};                                         \
  }
RUNG_PLACEHOLDER_OPERATOR(+, std::plus<>)
RUNG_PLACEHOLDER_OPERATOR(-, std::minus<>)
RUNG_PLACEHOLDER_OPERATOR(*, std::multiplies<>)
RUNG_PLACEHOLDER_OPERATOR(/, std::divides<>)
RUNG_PLACEHOLDER_OPERATOR(%, std::modulus<>)
RUNG_PLACEHOLDER_OPERATOR(<, std::less<>)
RUNG_PLACEHOLDER_OPERATOR(>, std::greater<>)
RUNG_PLACEHOLDER_OPERATOR(<=, std::less_equal<>)
RUNG_PLACEHOLDER_OPERATOR(>=, std::greater_equal<>)
RUNG_PLACEHOLDER_OPERATOR(==, std::equal_to<>)
RUNG_PLACEHOLDER_OPERATOR(!=, std::not_equal_to<>)
RUNG_PLACEHOLDER_OPERATOR(&&, std::logical_and<>)
RUNG_PLACEHOLDER_OPERATOR(||, std::logical_or<>)
#undef RUNG_PLACEHOLDER_OPERATOR
template <class Function>
__host__ __device__ constexpr auto operator-(const rung_expression<Function>& a) {
  return 0 - a;
}

namespace placeholders {
inline constexpr rung_expression<rung_argument<0>> _1;
inline constexpr rung_expression<rung_argument<1>> _2;
inline constexpr rung_expression<rung_argument<2>> _3;
}  // namespace placeholders

}  // namespace thrust
