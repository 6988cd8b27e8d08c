// SPDX-License-Identifier: Apache-2.0
// A tensor of Inputs: its memory, the position of its elements, and its expected content. No copy
// is kept: the content is a function of the description, and generated again for a comparison.
// Internal to core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rung/harness/inputs.hpp"

namespace rung::detail {

// Covers typical out-of-bounds accesses: the widest vector, or a warp's 16-byte loads. A multiple
// of the GPU's alignment, so that the elements after the guard are aligned.
inline constexpr std::int64_t guard_bytes = 512;

/// Layout of a tensor in its buffer, in elements from the end of the front guard.
struct Placement {
  Extents strides;
  std::int64_t first = 0;  // position of index 0, 0, ...
  std::int64_t total = 0;  // elements with padding, without guards
};

/// Returns the placement of a tensor. `may_repeat`: Layout::broadcast applies (inputs only).
Placement place(Layout layout, const Extents& shape, bool may_repeat);

/// A tensor's memory and the description of its expected content.
struct InputBuffer {
  Tensor memory;  // bytes: guard, elements with padding, guard
  TensorRef tensor;
  std::uint64_t stream = 0;
  double scale = 1.0;
  bool repeats = false;  // broadcast along the first axis
  ValueMaker maker;      // empty: the variant's values

  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(memory.shape()[0]); }
  /// Returns the offset of element 0, 0, ... from the start of the memory.
  [[nodiscard]] std::ptrdiff_t offset() const {
    return static_cast<std::byte*>(tensor.data) - memory.data<std::byte>();
  }
  /// Returns whether the elements are contiguous and in order.
  [[nodiscard]] bool in_order() const {
    return !repeats && tensor.strides == tensor.shape.contiguous_strides();
  }
};

/// Range of bytes of a buffer's memory; whole elements.
struct Span {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Writes the expected content of the whole memory to `image`. `poison_only`: the elements are
/// poison, too.
void render(const InputBuffer& buffer, Values values, bool poison_only, std::byte* image);

/// Writes the expected content of a span to `image`. Needs in_order().
void render(const InputBuffer& buffer, Values values, bool poison_only, Span span,
            std::byte* image);

/// Returns the spans to compare if the memory is too large to compare in full after every run: the
/// bytes before and after the elements and, if `elements_too`, samples of the elements. Needs
/// in_order().
std::vector<Span> telling_spans(const InputBuffer& buffer, bool elements_too);

/// Returns the index of the element that contains the byte at offset `byte` from the first element,
/// such as "[1,2]"; "" if none does.
std::string element_at(const InputBuffer& buffer, std::ptrdiff_t byte);

}  // namespace rung::detail
