// SPDX-License-Identifier: Apache-2.0
// The networks: layers that know their forward and their backward pass, one behind the other.
#pragma once

#include <rung/rung.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace digits {

/// Every parameter of a network, in one tensor, and every gradient in another: a step of the
/// optimizer is one call, and so is the norm of the whole gradient.
class Parameters {
 public:
  struct Entry {
    std::string name;
    rung::Extents shape;
    double bound;  // at first: uniform between -bound and bound
    std::int64_t first;
  };

  /// Adds a parameter and returns its number; called before allocate().
  int add(const std::string& name, const rung::Extents& shape, double bound);
  void allocate(rung::Context& context, std::uint64_t seed);

  [[nodiscard]] rung::TensorRef value(int number) const { return part(values, number); }
  [[nodiscard]] rung::TensorRef gradient(int number) const { return part(gradients, number); }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] std::int64_t size() const { return size_; }

  rung::Tensor values;
  rung::Tensor gradients;
  rung::Tensor first_moment;
  rung::Tensor second_moment;

 private:
  [[nodiscard]] rung::TensorRef part(const rung::Tensor& whole, int number) const;

  std::vector<Entry> entries_;
  std::int64_t size_ = 0;
};

class Layer {
 public:
  virtual ~Layer() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  /// Makes room for batches of up to `capacity`; adds its parameters. Shapes are those of one
  /// image: returns that of the result.
  virtual rung::Extents build(rung::Context& context, Parameters& parameters,
                              const rung::Extents& shape, std::int64_t capacity) = 0;
  virtual rung::TensorRef forward(rung::Context& context, const Parameters& parameters,
                                  rung::TensorRef x) = 0;
  /// Computes the gradient of forward's input from that of its output, unless it is the first
  /// layer, and the gradients of the parameters.
  virtual rung::TensorRef backward(rung::Context& context, const Parameters& parameters,
                                   rung::TensorRef dy, bool is_first) = 0;
};

/// Told of each pass of each layer, if somebody wants to know.
class Watch {
 public:
  virtual ~Watch() = default;
  virtual void before(rung::Context& context) = 0;
  virtual void after(rung::Context& context, const std::string& part) = 0;
};

class Network {
 public:
  /// "perceptron", "softmax", "mlp" or "lenet".
  Network(const std::string& model, rung::Context& context, const rung::Extents& image,
          std::int64_t capacity, std::uint64_t seed);

  /// n x 10 numbers: the digit is where the largest is.
  rung::TensorRef forward(rung::Context& context, const rung::ConstTensorRef& images);
  /// Computes the gradients of all parameters from the gradient of those numbers.
  void backward(rung::Context& context, const rung::TensorRef& gradient);

  Parameters parameters;
  std::vector<std::unique_ptr<Layer>> layers;
  Watch* watch = nullptr;
};

/// The elements of a tensor in another shape; it is C-contiguous.
rung::TensorRef reshaped(const rung::TensorRef& tensor, const rung::Extents& shape);

}  // namespace digits
