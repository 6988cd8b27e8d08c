// SPDX-License-Identifier: Apache-2.0
// Reductions, scans and copies by cooperative groups.
#pragma once

#include "cooperative_groups.h"
#include "rung/simt/async_copy.hpp"

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

/// Returns the reduction to every thread of the group. Values are combined in order of rank, so
/// that the result is reproducible.
template <class Group, class T, class Operation>
inline T reduce(const Group& group, T value, Operation operation,
                RungPlace place = RungPlace::current()) {
  if constexpr (requires { group.rung_reduce(value, operation, place); }) {
    return group.rung_reduce(value, operation, place);  // for tiles larger than a warp
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

/// Calls function(to, from, bytes) for each word that the calling thread copies. Words have 4 bytes
/// if the addresses and the size are multiples of 4, else 1 byte.
template <class Group, class Function>
__forceinline__ void rung_for_each_word(const Group& group, void* to, const void* from,
                                        size_t bytes, Function function) {
  const size_t alignment = reinterpret_cast<size_t>(to) | reinterpret_cast<size_t>(from) | bytes;
  const size_t unit = alignment % 4 == 0 ? 4 : 1;
  for (size_t i = group.thread_rank() * unit; i < bytes; i += group.size() * unit) {
    function(static_cast<char*>(to) + i, static_cast<const char*>(from) + i, unit);
  }
}
/// Issues the calling thread's part of a copy. The copy is performed when the thread waits, or
/// immediately if the destination is not shared memory.
template <class Group>
__forceinline__ void rung_copy(const Group& group, void* to, const void* from, size_t bytes,
                               RungPlace place) {
  const bool late = rung::simt::in_own_shared_memory(to, bytes);
  rung_for_each_word(group, to, from, bytes, [&](void* word, const void* source, size_t unit) {
    if (late) {
      rung::simt::async_copy_bytes(word, source, unit, place);
    } else if (unit == 4) {
      *static_cast<unsigned*>(word) = *static_cast<const unsigned*>(source);
    } else {
      *static_cast<char*>(word) = *static_cast<const char*>(source);
    }
  });
}
template <class Group, class T, class From>
__forceinline__ void memcpy_async(const Group& group, T* to, const From* from, size_t bytes,
                                  RungPlace place = RungPlace::current()) {
  rung_copy(group, to, from, bytes, place);
  rung::simt::async_commit();
}
template <class Group, class T, class From>
__forceinline__ void memcpy_async(const Group& group, T* to, size_t to_count, const From* from,
                                  size_t from_count, RungPlace place = RungPlace::current()) {
  const size_t count = to_count < from_count ? to_count : from_count;
  memcpy_async(group, to, from, count * sizeof(T), place);
}
/// Waits for the group's copies into shared memory and makes them visible to the group.
template <class Group>
inline void wait(const Group& group, RungPlace place = RungPlace::current()) {
  rung::simt::async_wait_all();
  group.sync(place);
}
template <unsigned Stages, class Group>
inline void wait_prior(const Group& group, RungPlace place = RungPlace::current()) {
  rung::simt::async_wait_group(Stages);
  group.sync(place);
}

}  // namespace cooperative_groups
