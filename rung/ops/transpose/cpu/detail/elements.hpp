// SPDX-License-Identifier: Apache-2.0
// What transpose's CPU rungs share: opaque elements as types, and the machine's caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "rung/ops/transpose/op/transpose.hpp"

namespace rung::transpose_cpu {

using Moves = Transpose::Moves;

/// 16 bytes, as wide as an element gets.
struct Wide {
  std::uint64_t halves[2];
};

/// The elements of a tensor, whatever their type; T may be wider than the tensor's own.
template <class T, class Void>
auto* elements(const BasicTensorRef<Void>& tensor) {
  if constexpr (std::is_const_v<Void>) {
    return static_cast<const T*>(tensor.data);
  } else {
    return static_cast<T*>(tensor.data);
  }
}

/// Calls f.template operator()<T>() with a T of the size of the call's elements, unless there are
/// none.
template <class F>
void with_elements(const Transpose::Args& args, F&& f) {
  if (args.moves.empty()) return;
  switch (args.moves.element_bytes) {
    case 1:
      return f.template operator()<std::uint8_t>();
    case 2:
      return f.template operator()<std::uint16_t>();
    case 4:
      return f.template operator()<std::uint32_t>();
    case 8:
      return f.template operator()<std::uint64_t>();
    default:
      return f.template operator()<Wide>();
  }
}

}  // namespace rung::transpose_cpu
