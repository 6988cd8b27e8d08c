// SPDX-License-Identifier: Apache-2.0
// The layers with the formulas of their two passes, and the networks that are made of them.
#include "network.hpp"

#include <rung/harness/random.hpp>

#include <cmath>

namespace digits {
namespace {

using rung::Context;
using rung::DType;
using rung::Extents;
using rung::Tensor;
using rung::TensorRef;

/// Selects a rung of gemm that adds in the same order for any number of threads on a CPU.
rung::Pick product(const Context& context) {
  return context.backend() == rung::Backend::cpu ? rung::Pick{"threads"} : rung::best;
}

Tensor zeros(Context& context, const Extents& shape) {
  const std::vector<float> host(static_cast<std::size_t>(shape.product()));
  Tensor tensor(DType::f32, shape, context.device());
  rung::copy(rung::ConstTensorRef(host, shape), tensor);
  return tensor;
}

Extents batch_of(std::int64_t n, const Extents& image) {
  Extents shape{n};
  for (int axis = 0; axis < image.rank; ++axis) shape[shape.rank++] = image[axis];
  return shape;
}

/// The first n of a tensor made for more.
TensorRef first(const Tensor& tensor, std::int64_t n) {
  TensorRef part = tensor;
  part.shape[0] = n;
  return part;
}

/// y = x W^T + b                dW = dy^T x,  db = sum of dy,  dx = dy W
class Linear final : public Layer {
 public:
  Linear(std::string name, std::int64_t out) : name_(std::move(name)), out_(out) {}
  std::string name() const override { return name_; }

  Extents build(Context& context, Parameters& parameters, const Extents& shape,
                std::int64_t capacity) override {
    in_ = shape.product();
    const double bound = std::sqrt(6.0 / static_cast<double>(in_));  // K. He and others, 2015
    weight_ = parameters.add(name_ + ".weight", {out_, in_}, bound);
    bias_ = parameters.add(name_ + ".bias", {out_}, 0);
    y_ = Tensor(DType::f32, {capacity, out_}, context.device());
    dx_ = Tensor(DType::f32, batch_of(capacity, shape), context.device());
    return {out_};
  }
  TensorRef forward(Context& context, const Parameters& p, TensorRef x) override {
    const std::int64_t n = x.shape[0];
    x_ = reshaped(x, {n, in_});
    rung::gemm(context, x_, p.value(weight_), first(y_, n),
               {.transpose_b = true, .bias = p.value(bias_)}, product(context));
    return first(y_, n);
  }
  TensorRef backward(Context& context, const Parameters& p, TensorRef dy, bool is_first) override {
    const std::int64_t n = dy.shape[0];
    rung::gemm(context, dy, x_, p.gradient(weight_), {.transpose_a = true}, product(context));
    rung::reduce(context, dy, p.gradient(bias_), {.axes = {0}});
    if (is_first) return {};
    const TensorRef dx = first(dx_, n);
    rung::gemm(context, dy, p.value(weight_), reshaped(dx, {n, in_}), {}, product(context));
    return dx;
  }

 private:
  std::string name_;
  std::int64_t in_ = 0, out_;
  int weight_ = 0, bias_ = 0;
  Tensor y_, dx_;
  TensorRef x_;
};

/// y = max(x, 0), in place          dx = dy where y > 0, in place
class Relu final : public Layer {
 public:
  std::string name() const override { return "relu"; }
  Extents build(Context&, Parameters&, const Extents& shape, std::int64_t) override {
    return shape;
  }
  TensorRef forward(Context& context, const Parameters&, TensorRef x) override {
    rung::elementwise(context, {x}, x, {.function = rung::ElementwiseFunction::relu});
    return y_ = x;
  }
  TensorRef backward(Context& context, const Parameters&, TensorRef dy, bool) override {
    rung::activation_backward(context, y_, dy, dy, {rung::ActivationFunction::relu});
    return dy;
  }

 private:
  TensorRef y_;
};

/// y = w * x + b                dw = dy * x,  db = sum of dy over images and pixels,  dx = dy * w^T
class Convolution final : public Layer {
 public:
  Convolution(std::string name, std::int64_t out, std::int64_t kernel, int padding)
      : name_(std::move(name)), out_(out), kernel_(kernel), padding_(padding) {}
  std::string name() const override { return name_; }

  Extents build(Context& context, Parameters& parameters, const Extents& shape,
                std::int64_t capacity) override {
    const std::int64_t in = shape[0];
    const double bound = std::sqrt(6.0 / static_cast<double>(in * kernel_ * kernel_));
    weight_ = parameters.add(name_ + ".weight", {out_, in, kernel_, kernel_}, bound);
    bias_ = parameters.add(name_ + ".bias", {out_}, 0);
    const Extents made{out_, rung::convolved_extent(shape[1], kernel_, 1, padding_),
                       rung::convolved_extent(shape[2], kernel_, 1, padding_)};
    y_ = Tensor(DType::f32, batch_of(capacity, made), context.device());
    dx_ = Tensor(DType::f32, batch_of(capacity, shape), context.device());
    return made;
  }
  TensorRef forward(Context& context, const Parameters& p, TensorRef x) override {
    x_ = x;
    const TensorRef y = first(y_, x.shape[0]);
    rung::conv(context, x, p.value(weight_), y, {.padding = padding_, .bias = p.value(bias_)});
    return y;
  }
  TensorRef backward(Context& context, const Parameters& p, TensorRef dy, bool is_first) override {
    rung::conv_backward_filter(context, x_, dy, p.gradient(weight_), {.padding = padding_});
    rung::reduce(context, dy, p.gradient(bias_), {.axes = {0, 2, 3}});
    if (is_first) return {};
    const TensorRef dx = first(dx_, dy.shape[0]);
    rung::conv_backward_data(context, dy, p.value(weight_), dx, {.padding = padding_});
    return dx;
  }

 private:
  std::string name_;
  std::int64_t out_, kernel_;
  int padding_;
  int weight_ = 0, bias_ = 0;
  Tensor y_, dx_;
  TensorRef x_;
};

/// y = the largest of 2 x 2 pixels            dx = dy where that was
class MaxPool final : public Layer {
 public:
  std::string name() const override { return "pool"; }
  Extents build(Context& context, Parameters&, const Extents& shape,
                std::int64_t capacity) override {
    const Extents made{shape[0], shape[1] / 2, shape[2] / 2};
    y_ = Tensor(DType::f32, batch_of(capacity, made), context.device());
    indices_ = Tensor(DType::i32, batch_of(capacity, made), context.device());
    dx_ = Tensor(DType::f32, batch_of(capacity, shape), context.device());
    return made;
  }
  TensorRef forward(Context& context, const Parameters&, TensorRef x) override {
    const std::int64_t n = x.shape[0];
    rung::pool(context, x, first(y_, n), {.kernel = 2, .indices = first(indices_, n)});
    return first(y_, n);
  }
  TensorRef backward(Context& context, const Parameters&, TensorRef dy, bool) override {
    const std::int64_t n = dy.shape[0];
    rung::pool_backward(context, reshaped(dy, first(y_, n).shape), first(dx_, n),
                        {.kernel = 2, .indices = first(indices_, n)});
    return first(dx_, n);
  }

 private:
  Tensor y_, indices_, dx_;
};

std::vector<std::unique_ptr<Layer>> layers_of(const std::string& model) {
  std::vector<std::unique_ptr<Layer>> layers;
  const auto linear = [&](const char* name, std::int64_t out) {
    layers.push_back(std::make_unique<Linear>(name, out));
  };
  const auto relu = [&] { layers.push_back(std::make_unique<Relu>()); };
  if (model == "mlp") {
    linear("hidden1", 256);
    relu();
    linear("hidden2", 128);
    relu();
  } else if (model == "lenet") {  // Y. LeCun and others, 1998, with relu and maxima
    layers.push_back(std::make_unique<Convolution>("conv1", 6, 5, 2));
    relu();
    layers.push_back(std::make_unique<MaxPool>());
    layers.push_back(std::make_unique<Convolution>("conv2", 16, 5, 0));
    relu();
    layers.push_back(std::make_unique<MaxPool>());
    linear("hidden1", 120);
    relu();
    linear("hidden2", 84);
    relu();
  } else if (model != "perceptron" && model != "softmax") {
    throw rung::Error(rung::ErrorCode::invalid_argument,
                      "the model is " + model + "; accepted: perceptron, softmax, mlp, lenet");
  }
  linear("output", 10);
  return layers;
}

}  // namespace

TensorRef reshaped(const TensorRef& tensor, const Extents& shape) {
  return {static_cast<void*>(tensor.data), tensor.dtype, shape, tensor.device};
}

int Parameters::add(const std::string& name, const Extents& shape, double bound) {
  entries_.push_back({name, shape, bound, size_});
  size_ += (shape.product() + 15) / 16 * 16;  // each begins where vectors are aligned
  return static_cast<int>(entries_.size()) - 1;
}

void Parameters::allocate(Context& context, std::uint64_t seed) {
  std::vector<float> host(static_cast<std::size_t>(size_));
  for (const Entry& entry : entries_) {
    rung::Random random(rung::random_stream(seed, entry.name));
    for (std::int64_t i = 0; i < entry.shape.product(); ++i) {
      const double uniform = static_cast<double>(random.next() >> 11) * 0x1p-53;
      host[static_cast<std::size_t>(entry.first + i)] =
          static_cast<float>(entry.bound * (2 * uniform - 1));
    }
  }
  values = zeros(context, {size_});
  gradients = zeros(context, {size_});
  first_moment = zeros(context, {size_});
  second_moment = zeros(context, {size_});
  rung::copy(rung::ConstTensorRef(host), values);
}

TensorRef Parameters::part(const Tensor& whole, int number) const {
  const Entry& entry = entries_[static_cast<std::size_t>(number)];
  TensorRef made = reshaped(whole, entry.shape);
  made.data = whole.data<float>() + entry.first;
  return made;
}

Network::Network(const std::string& model, Context& context, const Extents& image,
                 std::int64_t capacity, std::uint64_t seed)
    : layers(layers_of(model)) {
  Extents shape = image;
  for (const auto& layer : layers) shape = layer->build(context, parameters, shape, capacity);
  parameters.allocate(context, seed);
}

TensorRef Network::forward(Context& context, const rung::ConstTensorRef& images) {
  // No layer writes to what it takes but relu, which is never the first.
  TensorRef x(const_cast<void*>(images.data), images.dtype, images.shape, images.device);
  for (const auto& layer : layers) {
    if (watch != nullptr) watch->before(context);
    x = layer->forward(context, parameters, x);
    if (watch != nullptr) watch->after(context, layer->name() + " forward");
  }
  return x;
}

void Network::backward(Context& context, const TensorRef& gradient) {
  TensorRef dy = gradient;
  for (std::size_t i = layers.size(); i-- > 0;) {
    if (watch != nullptr) watch->before(context);
    dy = layers[i]->backward(context, parameters, dy, i == 0);
    if (watch != nullptr) watch->after(context, layers[i]->name() + " backward");
  }
}

}  // namespace digits
