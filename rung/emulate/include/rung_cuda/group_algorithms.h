// SPDX-License-Identifier: Apache-2.0
// Reductions, scans and copies by cooperative groups.
#pragma once

#include "cooperative_groups.h"

namespace cooperative_groups {

#define RUNG_OPERATION(name, expression)                \
  template <class T = void>                             \
  struct name {                                         \
    T operator()(T a, T b) const { return expression; } \
  };                                                    \
  template <>                                           \
  struct name<void> {                                   \
    template <class T>                                  \
    T operator()(T a, T b) const {                      \
      return expression;                                \
    }                                                   \
  };
RUNG_OPERATION(plus, a + b)
RUNG_OPERATION(less, b < a ? b : a)
RUNG_OPERATION(greater, a < b ? b : a)
RUNG_OPERATION(bit_and, a& b)
RUNG_OPERATION(bit_or, a | b)
RUNG_OPERATION(bit_xor, a ^ b)
#undef RUNG_OPERATION

/// The same value in every thread of the group: combined in order of rank, always alike.
template <class Group, class T, class Operation>
inline T reduce(const Group& group, T value, Operation operation,
                RungPlace place = RungPlace::current()) {
  if constexpr (requires { group.rung_reduce(value, operation, place); }) {
    return group.rung_reduce(value, operation, place);  // a tile larger than a warp
  }
  T sum = group.shfl(value, 0, place);
  for (unsigned rank = 1; rank < group.size(); ++rank) {
    sum = operation(sum, group.shfl(value, static_cast<int>(rank), place));
  }
  return sum;
}
template <class Group, class T, class Operation>
inline T inclusive_scan(const Group& group, T value, Operation operation,
                        RungPlace place = RungPlace::current()) {
  T sum = value;
  for (unsigned rank = 0; rank < group.size(); ++rank) {
    const T other = group.shfl(sum, static_cast<int>(rank), place);
    if (rank + 1 == group.thread_rank()) sum = operation(other, value);
  }
  return sum;
}
template <class Group, class T>
inline T inclusive_scan(const Group& group, T value, RungPlace place = RungPlace::current()) {
  return inclusive_scan(group, value, plus<T>{}, place);
}
template <class Group, class T, class Operation>
inline T exclusive_scan(const Group& group, T value, Operation operation,
                        RungPlace place = RungPlace::current()) {
  const T sum = inclusive_scan(group, value, operation, place);
  const T before = group.shfl_up(sum, 1, place);
  return group.thread_rank() == 0 ? T{} : before;
}
template <class Group, class T>
inline T exclusive_scan(const Group& group, T value, RungPlace place = RungPlace::current()) {
  return exclusive_scan(group, value, plus<T>{}, place);
}

/// Done at once: what waits for it needs to wait all the same.
template <class Group, class T>
__forceinline__ void memcpy_async(const Group& group, T* to, const T* from, size_t bytes) {
  // In words where both ends are aligned to them, as the chip's instructions are.
  const auto copy = [&](auto* target, const auto* source) __attribute__((always_inline)) {
    constexpr size_t unit = sizeof(*target);
    for (size_t i = group.thread_rank(); i < bytes / unit; i += group.size()) target[i] = source[i];
  };
  const size_t alignment = reinterpret_cast<size_t>(to) | reinterpret_cast<size_t>(from) | bytes;
  if (alignment % 4 == 0) {
    copy(reinterpret_cast<unsigned*>(to), reinterpret_cast<const unsigned*>(from));
  } else {
    copy(reinterpret_cast<char*>(to), reinterpret_cast<const char*>(from));
  }
}
template <class Group, class T, class From>
__forceinline__ void memcpy_async(const Group& group, T* to, size_t to_count, const From* from,
                                  size_t from_count) {
  const size_t count = to_count < from_count ? to_count : from_count;
  for (size_t i = group.thread_rank(); i < count; i += group.size()) to[i] = from[i];
}
template <class Group>
inline void wait(const Group& group, RungPlace place = RungPlace::current()) {
  group.sync(place);
}
template <unsigned Stages, class Group>
inline void wait_prior(const Group& group, RungPlace place = RungPlace::current()) {
  group.sync(place);
}

}  // namespace cooperative_groups
