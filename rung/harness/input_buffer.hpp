// SPDX-License-Identifier: Apache-2.0
// One tensor of Inputs: its memory, where in it the elements lie, and what all of it should hold.
// No copy is kept: the contents are a function of the description, made again to compare with.
// Internal to core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rung/harness/inputs.hpp"

namespace rung::detail {

// Long enough for what goes wrong at an edge: the widest vector, or a warp's 16-byte loads. A
// multiple of the GPU's alignment, so that elements behind it keep that.
inline constexpr std::int64_t guard_bytes = 512;

/// Layout of a tensor in its buffer, in elements from the end of the front guard.
struct Placement {
  Extents strides;
  std::int64_t first = 0;  // of index 0, 0, ...
  std::int64_t total = 0;  // elements with padding, without guards
};

/// Only inputs may repeat along an axis.
Placement place(Layout layout, const Extents& shape, bool may_repeat);

/// One tensor's memory and everything needed to say what it should hold.
struct InputBuffer {
  Tensor memory;  // bytes: guard, elements with padding, guard
  TensorRef tensor;
  std::uint64_t stream = 0;
  double scale = 1.0;
  bool repeats = false;  // along its first axis
  ValueMaker maker;      // empty: the variant's values

  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(memory.shape()[0]); }
  /// Returns the offset of element 0, 0, ... from the start of the memory.
  [[nodiscard]] std::ptrdiff_t offset() const {
    return static_cast<std::byte*>(tensor.data) - memory.data<std::byte>();
  }
  /// Returns whether the elements lie one after another, in order.
  [[nodiscard]] bool in_order() const {
    return !repeats && tensor.strides == tensor.shape.contiguous_strides();
  }
};

/// Bytes of a buffer's memory, whole elements.
struct Span {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Writes what the whole memory should hold into `image`; elements too, unless they are poison.
void render(const InputBuffer& buffer, Values values, bool poison_only, std::byte* image);

/// Renders part of a memory whose elements are in order: `image` receives the span.
void render(const InputBuffer& buffer, Values values, bool poison_only, Span span,
            std::byte* image);

/// Returns the spans to compare of a memory too large to compare whole after every run: the
/// surroundings of the elements, and samples of them unless a run may write them. Needs in_order().
std::vector<Span> telling_spans(const InputBuffer& buffer, bool elements_too);

/// The index of the element that holds the byte this far from the first one; "" when none does.
std::string element_at(const InputBuffer& buffer, std::ptrdiff_t byte);

}  // namespace rung::detail
