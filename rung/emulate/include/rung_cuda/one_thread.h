// SPDX-License-Identifier: Apache-2.0
// Device-wide algorithms of CUB and Thrust, each run by one simulated thread as a sequential loop.
// Checks cover all accesses; counters do not reflect a GPU's algorithm.
#pragma once

// CUB and Thrust include assertions and clocks. All of <chrono> would take three times as long to
// compile as this part of it.
#include <bits/chrono.h>
#include <cassert>

#include <iterator>
#include <type_traits>

#include "cuda_runtime.h"

namespace rung::cuda {

// Written in the form to which `rung emulate` rewrites kernels, since system headers are not
// rewritten.
template <class Body>
void one_thread(Body body) {
  struct rung_kernel {};
  enter<rung_kernel>();
  body();
}
template <class Body>
cudaError_t run_in_one_thread(cudaStream_t stream, Body body) {
  launcher("one_thread", [=]() RUNG_UNSEEN { one_thread(body); }).with(1, 1, 0, stream)();
  return cudaPeekAtLastError();
}

/// Element type of an iterator; for thrust::device_ptr, the type to which its references refer.
template <class Iterator, class = void>
struct Element {
  using type = std::remove_cvref_t<decltype(*std::declval<Iterator>())>;
};
template <class Iterator>
struct Element<Iterator, std::void_t<typename Iterator::rung_element>> {
  using type = typename Iterator::rung_element;
};
template <class Iterator>
using ValueOf = typename Element<Iterator>::type;

/// Maps a key to bits with the same order: negative integers before others, floats by value.
template <class Key>
auto ordered_bits(const Key& key) {
  using Bits = std::conditional_t<
      sizeof(Key) == 1, unsigned char,
      std::conditional_t<sizeof(Key) == 2, unsigned short,
                         std::conditional_t<sizeof(Key) == 4, unsigned, unsigned long long>>>;
  static_assert(sizeof(Key) == sizeof(Bits), "keys have 1, 2, 4 or 8 bytes");
  constexpr Bits sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  Bits bits;
  __builtin_memcpy(&bits, &key, sizeof(bits));
  if constexpr (std::is_integral_v<Key>) {
    if constexpr (std::is_signed_v<Key>) bits ^= sign;
  } else {
    bits = static_cast<Bits>((bits & sign) != 0 ? ~bits : bits ^ sign);
  }
  return bits;
}

}  // namespace rung::cuda
