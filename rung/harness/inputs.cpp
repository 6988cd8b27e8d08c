// SPDX-License-Identifier: Apache-2.0
// Tensors for checks: elements, padding of the layout, and a guard region on either side. All bytes
// outside elements are poison.
#include "rung/harness/inputs.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "rung/core/context.hpp"
#include "rung/core/cpu_device.hpp"
#include "rung/harness/guards.hpp"
#include "rung/harness/input_buffer.hpp"
#include "rung/harness/input_values.hpp"
#include "rung/harness/random.hpp"

namespace rung {

using detail::guard_bytes;
using detail::InputBuffer;
using detail::Span;

namespace {

/// Buffers of up to this many bytes are compared in full after every run. Covers all tensors of
/// `rung check`; comparing the gigabytes of `rung bench` would take longer than timing.
constexpr std::int64_t compared_whole = std::int64_t{64} << 20;

std::atomic<detail::GuardReceiver> guard_receiver = nullptr;

std::string describe(const Inputs::Entry& entry) {
  return std::string(entry.written ? entry.read ? "in-out" : "output" : "input") + " '" +
         entry.name + "' (" + std::string(to_string(entry.tensor.dtype)) + " " +
         to_string(entry.tensor.shape) + ")";
}

/// Throws Error(out_of_memory) if a tensor cannot fit, before it is filled: Linux overcommits
/// memory and kills a process that touches too much. `reserved`: bytes of tensors not yet filled.
void expect_memory(std::string_view name, DType dtype, const Extents& shape, std::int64_t bytes,
                   std::int64_t reserved) {
  constexpr std::int64_t always_there = std::int64_t{64} << 20;  // no query of available memory
  if (bytes <= always_there) return;
  const std::int64_t available = detail::available_memory() - reserved;
  if (bytes <= available) return;
  const auto gib = [](std::int64_t count) {
    return std::to_string(count >> 30) + "." + std::to_string((count >> 20) % 1024 * 10 / 1024);
  };
  throw Error(ErrorCode::out_of_memory,
              "tensor '" + std::string(name) + "' of shape " + to_string(shape) + " (" +
                  std::string(to_string(dtype)) + ") needs " + gib(bytes) + " GiB of memory; " +
                  gib(available) + " GiB are available");
}

}  // namespace

void detail::receive_guards(GuardReceiver receiver) { guard_receiver = receiver; }

std::string to_string(const Variant& variant) {
  constexpr const char* layouts[] = {"plain",   "misaligned", "padded",
                                     "strided", "transposed", "broadcast"};
  constexpr const char* values[] = {"", " integers", " adversarial"};
  return std::string(layouts[static_cast<std::size_t>(variant.layout)]) +
         values[static_cast<std::size_t>(variant.values)];
}

std::vector<Variant> all_variants() {
  return {{Layout::plain},
          {Layout::misaligned},
          {Layout::padded},
          {Layout::strided},
          {Layout::transposed},
          {Layout::broadcast},
          {Layout::plain, Values::integers},
          {Layout::plain, Values::adversarial}};
}

struct Inputs::Impl {
  Variant variant;
  std::uint64_t seed;
  Device device;
  Filling filling;
  std::vector<Entry> entries;
  std::vector<InputBuffer> buffers;
  bool damaged = false;       // set by damage(); the next reset() restores inputs, too
  std::int64_t reserved = 0;  // bytes that are allocated or outlined but never touched

  [[nodiscard]] bool on_host() const { return in_host_memory(device.backend); }

  TensorRef add(std::string_view name, DType dtype, const Extents& shape, bool read, bool written,
                double scale = 1.0, ValueMaker maker = {}) {
    const detail::Placement placement = detail::place(variant.layout, shape, !written);
    const auto size = static_cast<std::int64_t>(size_of(dtype));
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(placement.first + placement.total, size, &bytes) ||
        __builtin_add_overflow(bytes, 2 * guard_bytes, &bytes)) {
      throw Error(ErrorCode::invalid_argument, "tensor '" + std::string(name) + "' of shape " +
                                                   to_string(shape) +
                                                   " has more than 2^63 - 1 bytes");
    }
    const bool real = filling != Filling::addresses;
    if (real && on_host()) expect_memory(name, dtype, shape, bytes, reserved);
    InputBuffer buffer;
    std::byte* memory = nullptr;
    if (real) {
      buffer.memory = Tensor(DType::u8, {bytes}, device);
      memory = buffer.memory.data<std::byte>();
    } else {
      memory = address(bytes);
    }
    if (filling == Filling::none) reserved += bytes;
    std::byte* const data = memory + guard_bytes + placement.first * size;
    buffer.tensor = TensorRef(data, dtype, shape, placement.strides, device);
    buffer.stream = random_stream(seed, name);
    buffer.scale = scale;
    buffer.maker = std::move(maker);
    buffer.repeats =
        variant.layout == Layout::broadcast && !written && shape.rank > 0 && placement.total > 0;
    entries.push_back({std::string(name), buffer.tensor, written, read});
    buffers.push_back(std::move(buffer));
    if (filling == Filling::values) fill(buffers.size() - 1);
    if (real && device.backend == Backend::simt) {
      const detail::GuardReceiver receiver = guard_receiver;
      const std::int64_t before = data - memory;
      const std::int64_t behind = bytes - before - placement.total * size;
      if (receiver != nullptr) {
        receiver(memory, static_cast<std::size_t>(before), static_cast<std::size_t>(behind),
                 describe(entries.back()));
      }
    }
    return buffers.back().tensor;
  }

  /// Returns a distinct address for an outline of `bytes` bytes, after all earlier outlines. No
  /// memory is allocated.
  std::byte* address(std::int64_t bytes) {
    constexpr std::int64_t first = 4096;
    constexpr std::int64_t alignment = 256;
    const std::int64_t begin = first + (reserved + alignment - 1) / alignment * alignment;
    if (__builtin_add_overflow(begin - first, bytes, &reserved) ||
        reserved > INT64_MAX - 2 * first) {
      throw Error(ErrorCode::out_of_memory, "the tensors have more than 2^63 - 1 bytes");
    }
    return reinterpret_cast<std::byte*>(begin);  // NOLINT(performance-no-int-to-ptr)
  }

  void fill(std::size_t index) const {
    const InputBuffer& buffer = buffers[index];
    if (on_host()) {
      detail::render(buffer, variant.values, !entries[index].read, buffer.memory.data<std::byte>());
      return;
    }
    const Tensor image(DType::u8, buffer.memory.shape());
    detail::render(buffer, variant.values, !entries[index].read, image.data<std::byte>());
    copy(image, buffer.memory);
  }

  [[nodiscard]] std::string damage(std::size_t index) const {
    const InputBuffer& buffer = buffers[index];
    const auto all = static_cast<std::int64_t>(buffer.bytes());
    const bool written = entries[index].written;
    if (all <= compared_whole || !buffer.in_order()) return damage_within(index, {0, all}, written);
    for (const Span& span : detail::telling_spans(buffer, !written)) {
      std::string found = damage_within(index, span, false);
      if (!found.empty()) return found;
    }
    return "";
  }

  /// Returns a description of the damage within a span, "" if none; `but_elements` exempts the
  /// elements.
  [[nodiscard]] std::string damage_within(std::size_t index, Span span, bool but_elements) const {
    const InputBuffer& buffer = buffers[index];
    const Entry& entry = entries[index];
    const std::int64_t bytes = span.end - span.begin;
    const Tensor expected(DType::u8, {bytes});
    const bool whole = bytes == static_cast<std::int64_t>(buffer.bytes());
    if (whole) {
      detail::render(buffer, variant.values, !entry.read, expected.data<std::byte>());
    } else {
      detail::render(buffer, variant.values, !entry.read, span, expected.data<std::byte>());
    }
    TensorRef part = buffer.memory.ref();
    part.data = buffer.memory.data<std::byte>() + span.begin;
    part.shape = {bytes};
    Tensor fetched;
    if (!on_host()) {
      fetched = Tensor(DType::u8, {bytes});
      copy(part, fetched);
      part = fetched.ref();
    }
    const auto* const is = static_cast<const std::byte*>(part.data);
    if (but_elements) {
      TensorRef from = buffer.tensor;
      TensorRef to = buffer.tensor;
      from.device = to.device = {};
      from.data = static_cast<std::byte*>(part.data) + buffer.offset();
      to.data = expected.data<std::byte>() + buffer.offset();
      copy(from, to);
    }
    const std::byte* const should_be = expected.data<std::byte>();
    if (std::memcmp(is, should_be, static_cast<std::size_t>(bytes)) == 0) return "";
    std::int64_t first = bytes;
    std::int64_t changed = 0;
    for (std::int64_t byte = 0; byte < bytes; ++byte) {
      if (is[byte] == should_be[byte]) continue;
      first = std::min(first, byte);
      ++changed;
    }
    const std::ptrdiff_t from_element = span.begin + first - buffer.offset();
    const std::string element = detail::element_at(buffer, from_element);
    const std::string where = std::to_string(from_element < 0 ? -from_element : from_element) +
                              (from_element < 0 ? " bytes before" : " bytes after") +
                              " the start of its first element";
    return describe(entry) + ": " + std::to_string(changed) + " bytes changed, the first " + where +
           (element.empty() ? ", outside its elements" : ", in element " + element);
  }
};

Inputs::Inputs(Variant variant, std::uint64_t seed, Device device, Filling filling)
    : impl_(std::make_unique<Impl>(Impl{variant, seed, device, filling, {}, {}})) {}
Inputs::Inputs(Inputs&&) noexcept = default;
Inputs& Inputs::operator=(Inputs&&) noexcept = default;
Inputs::~Inputs() = default;

Variant Inputs::variant() const { return impl_->variant; }
Filling Inputs::filling() const { return impl_->filling; }

ConstTensorRef Inputs::input(std::string_view name, DType dtype, const Extents& shape,
                             double scale) {
  return impl_->add(name, dtype, shape, true, false, scale);
}
ConstTensorRef Inputs::input(std::string_view name, DType dtype, const Extents& shape,
                             ValueMaker maker) {
  return impl_->add(name, dtype, shape, true, false, 1.0, std::move(maker));
}
TensorRef Inputs::output(std::string_view name, DType dtype, const Extents& shape) {
  return impl_->add(name, dtype, shape, false, true);
}
TensorRef Inputs::in_out(std::string_view name, DType dtype, const Extents& shape) {
  return impl_->add(name, dtype, shape, true, true);
}
TensorRef Inputs::in_out(std::string_view name, DType dtype, const Extents& shape,
                         ValueMaker maker) {
  return impl_->add(name, dtype, shape, true, true, 1.0, std::move(maker));
}

const std::vector<Inputs::Entry>& Inputs::entries() const { return impl_->entries; }

void Inputs::reset() {
  for (std::size_t index = 0; index < impl_->buffers.size(); ++index) {
    if (impl_->entries[index].written || impl_->damaged) impl_->fill(index);
  }
  impl_->damaged = false;
}

Tensor Inputs::host(std::size_t entry) const {
  const TensorRef& tensor = impl_->entries.at(entry).tensor;
  Tensor on_host(tensor.dtype, tensor.shape);
  copy(tensor, on_host);
  return on_host;
}

std::string Inputs::damage() const {
  for (std::size_t index = 0; index < impl_->buffers.size(); ++index) {
    std::string found = impl_->damage(index);
    if (found.empty()) continue;
    impl_->damaged = true;
    return found;
  }
  return "";
}

}  // namespace rung
