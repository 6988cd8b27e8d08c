// SPDX-License-Identifier: Apache-2.0
// Inputs: makes the tensors of a problem in a variant of layout and values, so that every operator
// is checked with all variants without code of its own.
//
// Values depend on the seed, the tensor's name and the logical index only: a problem has the same
// values on every device and in every layout (broadcast axes repeat them).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/core/tensor.hpp"

namespace rung {

/// Memory layout of tensors.
enum class Layout : std::uint8_t {
  plain,       // C-contiguous, 64-byte aligned
  misaligned,  // the first element one element past an aligned address
  padded,      // rows longer than their content; NaN in the padding
  strided,     // every second element of the last axis; NaN between
  transposed,  // the last two axes swapped in memory
  broadcast,   // inputs repeat along their first axis (stride 0); outputs plain
};
/// Values of inputs.
enum class Values : std::uint8_t {
  normal,       // standard normal
  integers,     // small whole numbers: sums are exact, results must be bitwise equal
  adversarial,  // magnitudes over many binades, cancelling pairs, subnormals, signed zeros
};

struct Variant {
  Layout layout = Layout::plain;
  Values values = Values::normal;
  bool operator==(const Variant&) const = default;
};
RUNG_API std::string to_string(const Variant& variant);
/// Returns all layouts with normal values, and the plain layout with all kinds of values.
RUNG_API std::vector<Variant> all_variants();

/// Function that returns the value at a logical index, given a random number uniform in [0, 1): for
/// skewed or sorted inputs. The value is rounded to the tensor's type; integers saturate.
using ValueMaker = std::function<double(std::int64_t index, double uniform)>;

/// Filling of tensors. values: allocated and filled. none: allocated, not filled. addresses: not
/// allocated, must not be accessed; for examining problems of any size.
enum class Filling : std::uint8_t { values, none, addresses };

class RUNG_API Inputs {
 public:
  explicit Inputs(Variant variant = {}, std::uint64_t seed = 1, Device device = {},
                  Filling filling = Filling::values);
  Inputs(Inputs&&) noexcept;
  Inputs& operator=(Inputs&&) noexcept;
  ~Inputs();

  [[nodiscard]] Variant variant() const;
  [[nodiscard]] Filling filling() const;

  /// Makes a tensor that the operator reads. `scale` multiplies floating-point values.
  ConstTensorRef input(std::string_view name, DType dtype, const Extents& shape,
                       double scale = 1.0);
  /// Makes an input with values by `maker` instead of the variant's.
  ConstTensorRef input(std::string_view name, DType dtype, const Extents& shape, ValueMaker maker);
  /// Makes a tensor that the operator writes; reset() poisons it.
  TensorRef output(std::string_view name, DType dtype, const Extents& shape);
  /// Makes a tensor that the operator reads and writes; reset() fills it like an input.
  TensorRef in_out(std::string_view name, DType dtype, const Extents& shape);
  TensorRef in_out(std::string_view name, DType dtype, const Extents& shape, ValueMaker maker);

  struct Entry {
    std::string name;
    TensorRef tensor;
    bool written = false;
    bool read = false;
  };
  [[nodiscard]] const std::vector<Entry>& entries() const;

  /// Poisons outputs and refills in-outs; required before each checked run.
  void reset();
  /// Returns a contiguous host copy of an entry's elements.
  [[nodiscard]] Tensor host(std::size_t entry) const;
  /// Returns "" if all guards, padding and input elements are unchanged, else a description of the
  /// first damage. Samples the elements of contiguous tensors larger than 64 MiB.
  [[nodiscard]] std::string damage() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Output of a reference, for each written entry in the order of make(): rows (over all axes but
/// the last) in double precision, with the magnitude of each element's terms.
struct Oracle {
  struct Output {
    std::vector<std::int64_t> rows;  // indices of the rows to compute, ascending
    std::int64_t length = 0;         // elements per row
    std::vector<double> value;       // rows.size() * length
    std::vector<double> magnitude;
  };
  std::vector<Output> outputs;
};

}  // namespace rung
