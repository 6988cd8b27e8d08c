// SPDX-License-Identifier: Apache-2.0
// transfer: operator object, list of rungs, and validation of arguments.
#include "rung/ops/transfer/op/transfer.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_words.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/harness/run_examples.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<Transfer> rung_list;
const Operator<Transfer> self;

const RunExample example{"transfer", "x.npy --backend cuda -o y.npy", "needs a GPU"};

constexpr std::array functions = {ElementwiseFunction::relu, ElementwiseFunction::sigmoid,
                                  ElementwiseFunction::tanh, ElementwiseFunction::gelu,
                                  ElementwiseFunction::exp,  ElementwiseFunction::silu,
                                  ElementwiseFunction::sign};

void require_host(const ConstTensorRef& tensor, const char* which) {
  if (!in_host_memory(tensor.device.backend)) {
    reject(Transfer::name,
           fmt::format("{} is on {}:{}; accepted: host memory (elementwise takes tensors that "
                       "are on the device already)",
                       which, to_string(tensor.device.backend), tensor.device.index));
  }
  const Extents dense = tensor.shape.contiguous_strides();
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    if (tensor.shape[axis] > 1 && tensor.strides[axis] != dense[axis] && !tensor.empty()) {
      reject(Transfer::name, fmt::format("{} has strides {}; accepted: {}, as copies are of "
                                         "contiguous memory",
                                         which, to_string(tensor.strides), to_string(dense)));
    }
  }
}

Elementwise::Args as_elementwise(const Transfer::Call& call) {
  return bind<Elementwise>({.in = {call.x}, .z = call.y, .function = call.function});
}

}  // namespace

RungList<Transfer>& Transfer::rungs() { return rung_list; }

void Transfer::bind(Args& args) {
  require_choice(name, args.function, ElementwiseFunction::sign, "function");
  if (arity(args.function) != 1) {
    reject(name, fmt::format("function {}; accepted: relu, sigmoid, tanh, gelu, exp, silu, sign",
                             to_string(args.function)));
  }
  require_shape(name, args.x, "x", args.y.shape);
  require_dtype(name, args.x, "x", {args.y.dtype});
  require_host(args.x, "x");
  require_host(args.y, "y");
  static_cast<void>(as_elementwise(args));  // checks types, with elementwise's messages
}

Cost Transfer::cost(const Args& args) { return Elementwise::cost(as_elementwise(args)); }

void Transfer::reference(const Args& args, Oracle& oracle) {
  Elementwise::reference(as_elementwise(args), oracle);
}

Tolerance Transfer::tolerance(const Args& args, const RungInfo& rung, Values values) {
  return Elementwise::tolerance(as_elementwise(args), rung, values);
}

std::vector<Problem> Transfer::check_problems(Backend backend) {
  if (backend == Backend::cpu) return {};
  // Empty; one element; less than a chunk; several chunks, the last one partial.
  return Problem::parse_all({"f32 0", "f32 1,relu", "f32 1000,gelu", "f64 30x7,exp", "f32 77,silu",
                             "f16 500,sign", "bf16 999,tanh", "u8 70001,relu", "f32 2500003,relu"});
}

std::vector<Problem> Transfer::bench_problems(Backend backend) {
  if (backend == Backend::cuda) {
    return Problem::parse_all({"f32 67108864,relu", "f32 67108864,gelu", "f32 1048576,relu"});
  }
  if (backend == Backend::simt) return Problem::parse_all({"f32 10000,relu"});
  return {};
}

Transfer::Call Transfer::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, problem.extents.size(),
                 {"relu", "sigmoid", "tanh", "gelu", "exp", "silu", "sign"});
  // Tensors are in host memory on every backend, and contiguous in every variant, since the
  // operator accepts nothing else. Only the variant's alignment is kept.
  Variant variant = inputs.variant();
  if (variant.layout != Layout::misaligned) variant.layout = Layout::plain;
  inputs = Inputs(variant, 1, Device{}, inputs.filling());
  Call call;
  expect_one_of(name, problem, functions, [](ElementwiseFunction one) { return to_string(one); });
  for (const ElementwiseFunction function : functions) {
    if (problem.has(to_string(function))) call.function = function;
  }
  const Extents shape(problem.extents);
  call.x = inputs.input("x", problem.dtype, shape);
  call.y = inputs.output("y", problem.dtype, shape);
  return call;
}

Problem Transfer::describe(const Call& call) {
  return ProblemWriter(call.x.dtype, call.x.shape)
      .flag(to_string(call.function), call.function != ElementwiseFunction::relu)
      .problem();
}

std::span<const ArgumentSpec> Transfer::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 2> specs{{
      {"x", Kind::tensor, true, "the operand"},
      {"function", Kind::text, false, "what to compute; default relu",
       "relu|sigmoid|tanh|gelu|exp|silu|sign"},
  }};
  return specs;
}

void Transfer::invoke(Context& context, Invocation& call, Pick pick) {
  TransferOptions options;
  for (const ElementwiseFunction function : functions) {
    if (call.text("function", "relu") == to_string(function)) options.function = function;
  }
  const Tensor given = call.tensors.at("x");
  Tensor x(given.dtype(), given.shape());
  copy(given, x);  // x is on the device, where the workbench placed it
  call.result = Tensor(given.dtype(), given.shape());
  transfer(context, x, call.result, options, pick);
}

void transfer(Context& context, const ConstTensorRef& x, const TensorRef& y,
              const TransferOptions& options, Pick pick) {
  call<Transfer>(context, pick,
                 [&]<class Call>() { return Call{.x = x, .y = y, .function = options.function}; });
}

}  // namespace rung
