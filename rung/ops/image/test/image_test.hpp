// SPDX-License-Identifier: Apache-2.0
// Shared by image's tests: dense pictures, and calls of every rung.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "rung/core/tensor.hpp"
#include "rung/ops/image/op/image.hpp"
#include "tests/support/operators.hpp"

namespace rung::image_test {

using namespace test;

/// A dense array of u8 or f32.
template <class T>
struct Pixels {
  Extents shape;
  std::vector<T> values;

  explicit Pixels(const Extents& extents, T value = 0)
      : shape(extents), values(static_cast<std::size_t>(extents.product()), value) {}
  operator TensorRef() { return {values.data(), shape}; }             // NOLINT
  operator ConstTensorRef() const { return {values.data(), shape}; }  // NOLINT
  T& operator()(std::int64_t row, std::int64_t column, std::int64_t channel = 0) {
    return values[static_cast<std::size_t>((row * shape[1] + column) * shape[2] + channel)];
  }
};
using Bytes = Pixels<std::uint8_t>;
using Floats = Pixels<float>;

inline Bytes random_bytes(const Extents& shape, unsigned seed) {
  Bytes bytes(shape);
  std::mt19937 engine(seed);
  for (std::uint8_t& value : bytes.values) value = static_cast<std::uint8_t>(engine());
  return bytes;
}

class ImageOn : public OnBackend {
 protected:
  /// Calls f() after each rung of the backend that supports the call has run on it.
  template <class F>
  void for_each_rung(const ConstTensorRef& x, const TensorRef& y, const ImageOptions& options,
                     F&& f) {
    const auto args = bind<Image>({.x = x, .y = y, .options = options});
    for (const std::string_view name : rungs_that_take<Image>(args, context)) {
      SCOPED_TRACE(std::string(name));
      image(context, x, y, options, {name});
      f();
    }
  }
};

}  // namespace rung::image_test
