// SPDX-License-Identifier: Apache-2.0
// Buffers of Inputs: layout with guards and padding, expected content, and location of damage.
#include "rung/harness/input_buffer.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "rung/core/parallel.hpp"
#include "rung/harness/input_values.hpp"

namespace rung::detail {
namespace {

/// Calls visit(logical index, offset in elements) for every row along the last axis.
void for_each_row(const InputBuffer& buffer,
                  const std::function<void(std::int64_t, std::int64_t)>& visit) {
  const TensorRef& tensor = buffer.tensor;
  if (tensor.empty()) return;
  const int outer = std::max(tensor.rank() - 1, 0);
  const std::int64_t length = tensor.rank() > 0 ? tensor.shape[outer] : 1;
  Extents index;
  std::int64_t logical = 0;
  std::int64_t offset = 0;
  // A broadcast axis is stored once.
  const auto extent = [&](int axis) {
    return axis == 0 && buffer.repeats ? 1 : tensor.shape[axis];
  };
  for (;;) {
    visit(logical, offset);
    logical += length;
    int axis = outer - 1;
    for (; axis >= 0; --axis) {
      offset += tensor.strides[axis];
      if (++index[axis] < extent(axis)) break;
      offset -= index[axis] * tensor.strides[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

/// Generates the values of `count` elements from logical index `first` on.
void generate(const InputBuffer& buffer, Values values, std::int64_t first, std::int64_t count,
              std::byte* elements) {
  const DType dtype = buffer.tensor.dtype;
  if (buffer.maker) {
    generate_made(dtype, buffer.maker, buffer.stream, first, count, elements);
  } else {
    generate_values(dtype, values, buffer.stream, buffer.scale, first, count, elements);
  }
}

}  // namespace

Placement place(Layout layout, const Extents& shape, bool may_repeat) {
  constexpr std::int64_t padding = 5;  // odd: only the first row stays aligned
  const int last = shape.rank - 1;
  Placement placement{shape.contiguous_strides(), 0, shape.product()};
  if (placement.total == 0 || shape.rank == 0) {
    if (layout == Layout::misaligned) placement.first = 1;
    return placement;
  }
  Extents memory = shape;  // shape of the contiguous tensor that contains the elements
  switch (layout) {
    case Layout::plain:
      break;
    case Layout::misaligned:
      placement.first = 1;
      break;
    case Layout::padded:
      memory[last] += padding;
      placement = {memory.contiguous_strides(), 0, memory.product()};
      break;
    case Layout::strided:
      if (__builtin_mul_overflow(memory[last], 2, &memory[last])) memory[last] = INT64_MAX;
      placement = {memory.contiguous_strides(), 0, memory.product()};
      placement.strides[last] = 2;
      break;
    case Layout::transposed:
      if (shape.rank < 2) break;
      std::swap(memory[last], memory[last - 1]);
      placement.strides = memory.contiguous_strides();
      std::swap(placement.strides[last], placement.strides[last - 1]);
      break;
    case Layout::broadcast:
      if (!may_repeat) break;
      placement.strides[0] = 0;
      placement.total /= shape[0];
      break;
  }
  return placement;
}

void render(const InputBuffer& buffer, Values values, bool poison_only, Span span,
            std::byte* image) {
  const TensorRef& tensor = buffer.tensor;
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
  generate_poison(tensor.dtype, span.begin / size, (span.end - span.begin) / size, image);
  const std::int64_t start = buffer.offset();
  const std::int64_t from = std::max(span.begin, start);
  const std::int64_t to = std::min(span.end, start + tensor.size() * size);
  if (poison_only || from >= to) return;
  generate(buffer, values, (from - start) / size, (to - from) / size, image + (from - span.begin));
}

void render(const InputBuffer& buffer, Values values, bool poison_only, std::byte* image) {
  const TensorRef& tensor = buffer.tensor;
  const std::size_t size = size_of(tensor.dtype);
  const auto bytes = static_cast<std::int64_t>(buffer.bytes());
  if (buffer.in_order()) {
    for_each_part(bytes, std::int64_t{1} << 20, [&](std::int64_t begin, std::int64_t end) {
      render(buffer, values, poison_only, {begin, end}, image + begin);
    });
    return;
  }
  generate_poison(tensor.dtype, 0, bytes / static_cast<std::int64_t>(size), image);
  if (poison_only || tensor.empty()) return;
  const int last = tensor.rank() - 1;
  // A broadcast vector is stored as one element.
  const bool single = tensor.rank() == 0 || (last == 0 && buffer.repeats);
  const std::int64_t length = single ? 1 : tensor.shape[last];
  const std::int64_t stride = single ? 1 : tensor.strides[last];
  std::byte* const first = image + buffer.offset();
  std::vector<std::byte> row(stride == 1 ? 0 : static_cast<std::size_t>(length) * size);
  for_each_row(buffer, [&](std::int64_t logical, std::int64_t offset) {
    std::byte* const to = first + offset * static_cast<std::int64_t>(size);
    std::byte* const elements = stride == 1 ? to : row.data();
    generate(buffer, values, logical, length, elements);
    if (stride == 1) return;
    copy(ConstTensorRef(row.data(), tensor.dtype, {length}),
         TensorRef(to, tensor.dtype, {length}, {stride}));
  });
}

std::vector<Span> telling_spans(const InputBuffer& buffer, bool elements_too) {
  const auto size = static_cast<std::int64_t>(size_of(buffer.tensor.dtype));
  const std::int64_t first = buffer.offset();
  const std::int64_t last = first + buffer.tensor.size() * size;
  std::vector<Span> spans{{0, first}, {last, static_cast<std::int64_t>(buffer.bytes())}};
  if (!elements_too) return spans;
  constexpr std::int64_t samples = 64;
  constexpr std::int64_t sample_elements = 4096;
  const std::int64_t most = std::max<std::int64_t>(buffer.tensor.size() - sample_elements, 0);
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::int64_t begin = first + most * i / (samples - 1) * size;
    spans.push_back({begin, std::min(begin + sample_elements * size, last)});
  }
  return spans;
}

std::string element_at(const InputBuffer& buffer, std::ptrdiff_t byte) {
  const TensorRef& tensor = buffer.tensor;
  const auto size = static_cast<std::ptrdiff_t>(size_of(tensor.dtype));
  const int last = tensor.rank() - 1;
  std::string found;
  for_each_row(buffer, [&](std::int64_t logical, std::int64_t offset) {
    const std::int64_t stride =
        last < 0 || (last == 0 && buffer.repeats) ? 1 : tensor.strides[last];
    const std::int64_t length = stride == 1 && last < 0 ? 1 : tensor.shape[last];
    const std::ptrdiff_t in_row = byte - offset * size;
    if (!found.empty() || in_row < 0 || in_row / size % stride != 0) return;
    const std::int64_t column = in_row / size / stride;
    if (column >= (last == 0 && buffer.repeats ? 1 : length)) return;
    std::int64_t rest = logical + column;
    for (int axis = last; axis >= 0; --axis) {
      found.insert(0, (axis > 0 ? "," : "") + std::to_string(rest % tensor.shape[axis]));
      rest /= tensor.shape[axis];
    }
    found = "[" + found + "]";
  });
  return found;
}

}  // namespace rung::detail
