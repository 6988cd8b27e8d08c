// SPDX-License-Identifier: Apache-2.0
// Inputs: makes the tensors of a problem, in the variant asked for, so that every operator is
// checked under every layout and every kind of value without writing a line for it.
//
// Values depend on the seed, the tensor's name and the logical index alone: the same problem made
// on another device, or in another variant, holds the same numbers (broadcast axes repeat theirs).
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
  integers,     // small whole numbers: sums are exact, so every bit must agree
  adversarial,  // magnitudes over many binades, cancelling pairs, subnormals, signed zeros
};

struct Variant {
  Layout layout = Layout::plain;
  Values values = Values::normal;
  bool operator==(const Variant&) const = default;
};
RUNG_API std::string to_string(const Variant& variant);
/// Every layout with normal values, and plain with every kind of value.
RUNG_API std::vector<Variant> all_variants();

/// The value at a logical index, from that and a number uniform in [0, 1): for inputs that a
/// problem wants skewed, sorted or peaky. Rounded to the tensor's type, integers saturating.
using ValueMaker = std::function<double(std::int64_t index, double uniform)>;

/// Filling of tensors: with values; none, their memory is only reserved; or addresses alone, which
/// must not be accessed, so that problems of any size can be examined on any machine.
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

  /// A tensor the operator reads. `scale` multiplies floating values.
  ConstTensorRef input(std::string_view name, DType dtype, const Extents& shape,
                       double scale = 1.0);
  /// Makes an input with values of the problem's own, whatever the variant's are.
  ConstTensorRef input(std::string_view name, DType dtype, const Extents& shape, ValueMaker maker);
  /// A tensor the operator writes: poisoned before each run.
  TensorRef output(std::string_view name, DType dtype, const Extents& shape);
  /// A tensor it reads and writes: filled like an input before each run.
  TensorRef in_out(std::string_view name, DType dtype, const Extents& shape);
  TensorRef in_out(std::string_view name, DType dtype, const Extents& shape, ValueMaker maker);

  struct Entry {
    std::string name;
    TensorRef tensor;
    bool written = false;
    bool read = false;
  };
  [[nodiscard]] const std::vector<Entry>& entries() const;

  /// Poisons outputs and refills in-outs: what must happen before a run is judged.
  void reset();
  /// A host copy of an entry's elements, C-contiguous.
  [[nodiscard]] Tensor host(std::size_t entry) const;
  /// "" when every byte outside the tensors' elements - canaries and padding - and every element
  /// of the inputs is as it was; else what was overwritten, and where.
  [[nodiscard]] std::string damage() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Output of a reference, for each written entry in the order of make(): rows (over all axes but
/// the last) in double precision, with the magnitude of each element's terms.
struct Oracle {
  struct Output {
    std::vector<std::int64_t> rows;  // which rows are wanted, ascending
    std::int64_t length = 0;         // elements per row
    std::vector<double> value;       // rows.size() * length
    std::vector<double> magnitude;
  };
  std::vector<Output> outputs;
};

}  // namespace rung
