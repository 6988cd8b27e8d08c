// SPDX-License-Identifier: Apache-2.0
// optimizer: cost, reference results and tolerances.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "rung/harness/inputs.hpp"
#include "rung/ops/optimizer/op/optimizer.hpp"

namespace rung {
namespace {

/// Type of the oracle's arithmetic: double would be too narrow to check f64.
using Real = long double;
using Args = Optimizer::Args;

DType arithmetic(const Args& args) {
  return args.parameters.dtype == DType::f64 ? DType::f64 : DType::f32;
}

Real element(const ConstTensorRef& tensor, const Extents& at) {
  std::int64_t offset = 0;
  for (int axis = 0; axis < at.rank; ++axis) offset += at[axis] * tensor.strides[axis];
  const auto bytes = static_cast<std::int64_t>(size_of(tensor.dtype));
  return load_as_double(tensor.dtype, static_cast<const std::byte*>(tensor.data) + offset * bytes);
}

Extents place_of(const Extents& shape, std::int64_t number) {
  Extents at = shape;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    at[axis] = number % shape[axis];
    number /= shape[axis];
  }
  return at;
}

struct Bounded {
  Real value = 0;
  Real error = 0;
};
/// Parameter and moments after the step, with error bounds.
struct State {
  Bounded p, m, v;
};

class Reference {
 public:
  explicit Reference(const Args& args) : args_(args), unit_(epsilon(arithmetic(args)) / 2) {
    if (!args.needs_norm()) return;
    Real squares = 0;
    for (std::int64_t i = 0; i < args.gradients.size(); ++i) {
      const Real g = element(args.gradients, place_of(args.gradients.shape, i));
      squares += g * g;
    }
    norm_ = std::sqrt(squares);
    const Real most = args.options.max_norm;
    if (most > 0 && !(norm_ <= most)) clip_ = most / norm_;
    // Squares of f64 are not summed in a wider type.
    if (arithmetic(args) == DType::f64) norm_error_ = static_cast<Real>(args.gradients.size());
  }

  [[nodiscard]] Bounded norm() const { return {norm_, (4 + norm_error_) * unit_ * norm_}; }

  [[nodiscard]] State after(const Extents& at) const {
    const OptimizerOptions& o = args_.options;
    const ConstTensorRef from = o.master.data != nullptr ? o.master : args_.parameters;
    const Real p = element(from, at);
    const Real clipped = clip_ * element(args_.gradients, at);
    const Real decay = o.decoupled ? 0 : o.weight_decay;
    const Real g = clipped + decay * p;
    const Real size = std::abs(clipped) + std::abs(decay * p);
    const Real kept = o.decoupled ? p * (1 - Real{o.learning_rate} * o.weight_decay) : p;
    const Real rate = o.learning_rate;
    const Real clip_error = clip_ < 1 ? norm_error_ : 0;
    // One unit of the smallest normal number, for products that underflow.
    const Real vanishing = arithmetic(args_) == DType::f64 ? 0x1p-1022L : 0x1p-126L;
    State state;
    if (o.kind == OptimizerKind::sgd) {
      const Real m = o.momentum != 0 ? element(o.first_moment, at) : 0;
      const Real terms = std::abs(o.momentum * m) + size;
      state.m = {o.momentum * m + g, (8 + clip_error) * unit_ * terms + vanishing};
      const Real step = o.nesterov ? g + o.momentum * state.m.value : state.m.value;
      state.p = {kept - rate * step,
                 2 * unit_ * std::abs(p) +
                     (o.nesterov ? 2 : 1) * (8 + clip_error) * unit_ * rate * terms +
                     2 * rate * vanishing + vanishing};
      return state;
    }
    const Real m = element(o.first_moment, at);
    const Real v = element(o.second_moment, at);
    const Real terms = std::abs(o.beta1 * m) + (1 - Real{o.beta1}) * size;
    const Real squares = o.beta2 * v + (1 - Real{o.beta2}) * size * size;
    state.m = {o.beta1 * m + (1 - Real{o.beta1}) * g, (8 + clip_error) * unit_ * terms + vanishing};
    state.v = {o.beta2 * v + (1 - Real{o.beta2}) * g * g,
               (8 + 2 * clip_error) * unit_ * squares + vanishing};
    const Real first = 1 - std::pow(Real{o.beta1}, o.step);
    const Real second = 1 - std::pow(Real{o.beta2}, o.step);
    const Real denominator = std::sqrt(state.v.value / second) + o.epsilon;
    const Real rates = rate / first;
    const Real spread = 1 + std::sqrt((1 - Real{o.beta2}) / second) * size / denominator;
    // A second moment that underflows reduces the root by up to this much.
    const Real lost = std::sqrt(vanishing / second) / denominator;
    state.p = {kept - rates * state.m.value / denominator,
               2 * unit_ * std::abs(p) +
                   rates * (terms * ((32 + 2 * clip_error) * unit_ * spread + lost) + vanishing) /
                       denominator +
                   vanishing};
    return state;
  }

 private:
  const Args& args_;
  Real unit_;
  Real norm_ = 0;
  Real norm_error_ = 0;  // in units of roundoff, beyond the few units of f32
  Real clip_ = 1;
};

void put(Oracle::Output& output, std::size_t i, const Bounded& made, DType type) {
  const Real smallest = type == DType::f16 ? 0x1p-25L : type == DType::f64 ? 0x1p-1022L : 0x1p-126L;
  const Real rounding = std::abs(made.value) * epsilon(type) / 2 * 1.01L + smallest;
  output.value[i] = static_cast<double>(made.value);
  output.magnitude[i] = static_cast<double>(made.error + rounding);
}

}  // namespace

Cost Optimizer::cost(const Args& args) {
  const auto count = static_cast<double>(args.parameters.size());
  const auto size = static_cast<double>(size_of(args.parameters.dtype));
  const auto wide = static_cast<double>(size_of(arithmetic(args)));
  const OptimizerOptions& o = args.options;
  double states = 0;
  for (const TensorRef& state : {o.first_moment, o.second_moment, o.master}) {
    if (state.data != nullptr) states += wide;
  }
  // With a master the parameters are not read; with a norm gradients are read twice.
  const double read =
      states + size * (args.needs_norm() ? 2 : 1) + (o.master.data != nullptr ? 0 : size);
  const bool adam = o.kind == OptimizerKind::adam;
  return {.bytes = count * (read + states + size),
          .operations = count * (adam ? 12 : 4),
          .written = count * (states + size)};
}

void Optimizer::reference(const Args& args, Oracle& oracle) {
  const Reference reference(args);
  const OptimizerOptions& o = args.options;
  std::size_t next = 0;  // in the order of make()'s outputs
  const auto fill = [&](const TensorRef& tensor, auto&& pick) {
    if (tensor.data == nullptr) return;
    Oracle::Output& output = oracle.outputs.at(next++);
    std::size_t i = 0;
    for (const std::int64_t row : output.rows) {
      for (std::int64_t column = 0; column < output.length; ++column, ++i) {
        const Extents at = place_of(tensor.shape, row * output.length + column);
        put(output, i, pick(at), tensor.dtype);
      }
    }
  };
  fill(args.parameters, [&](const Extents& at) { return reference.after(at).p; });
  fill(o.first_moment, [&](const Extents& at) { return reference.after(at).m; });
  fill(o.second_moment, [&](const Extents& at) { return reference.after(at).v; });
  fill(o.master, [&](const Extents& at) { return reference.after(at).p; });
  fill(o.norm, [&](const Extents&) { return reference.norm(); });
}

Tolerance Optimizer::tolerance(const Args&, const RungInfo&, Values) { return {.magnitude = 1}; }

}  // namespace rung
