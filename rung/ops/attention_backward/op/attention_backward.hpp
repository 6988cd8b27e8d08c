// SPDX-License-Identifier: Apache-2.0
// attention_backward's arguments as the rungs see them, and its interface to the workbench. The
// contract is in rung/ops/attention_backward/attention_backward.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/attention/shared/sizes.hpp"
#include "rung/ops/attention_backward/attention_backward.hpp"

namespace rung {

struct RUNG_API AttentionBackward {
  static constexpr std::string_view name = "attention_backward";
  static constexpr std::string_view summary =
      "dq, dk and dv, the gradients of attention, from its o and lse and the gradient of o";
  static constexpr std::string_view problem_help =
      "TYPE BxHxSxD[,options]: bf16 4x32x2048x128,causal   f16 8x32x1024x64,kv=8,keys=2048\n"
      "options: kv=N (heads of k and v; default H), keys=N (default S), dv=N (width of v and o;\n"
      "         default D), scale=X (default 1/sqrt(D)), causal, window=N (with causal: keys per\n"
      "         query; default all), cap=X (soft cap of the scores), slopes (of ALiBi), bias, "
      "sinks\n"
      "         (tensors that are given, too), lengths (other numbers of keys for each batch\n"
      "         element), packed (other numbers of queries and keys for each batch element, one\n"
      "         after another), packed=queries and packed=keys (only of these), bshd (what is\n"
      "         read is in memory as BxSxHxD), special (values: NaN in keys that no query sees,\n"
      "         and queries that see no key)";

  struct Call {
    ConstTensorRef q = {};
    ConstTensorRef k = {};
    ConstTensorRef v = {};
    ConstTensorRef o = {};
    ConstTensorRef lse = {};
    ConstTensorRef dout = {};
    TensorRef dq = {};
    TensorRef dk = {};
    TensorRef dv = {};
    AttentionBackwardOptions options = {};
    bool operator==(const Call&) const = default;
  };

  /// Checked arguments. options.scale is the factor of the scores, never 0; options.window is
  /// below the number of keys, 0 if it hides none.
  struct Args : AttentionSizes<Call> {
    [[nodiscard]] bool has_sink_gradient() const { return options.dsinks.data != nullptr; }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.q, "q"), in(call.k, "k"), in(call.v, "v"), in(call.o, "o"), in(call.lse, "lse"),
          in(call.dout, "dout"), optional_in(call.options.key_lengths, "key_lengths"),
          optional_in(call.options.query_offsets, "query_offsets"),
          optional_in(call.options.key_offsets, "key_offsets"),
          optional_in(call.options.slopes, "slopes"), optional_in(call.options.bias, "bias"),
          optional_in(call.options.sinks, "sinks"), out(call.dq, "dq"), out(call.dk, "dk"),
          out(call.dv, "dv"), optional_out(call.options.dsinks, "dsinks"));
  }
  static RungList<AttentionBackward>& rungs();
  static void bind(Args& args);

  /// Counts all keys: key_lengths are in device memory.
  static Cost cost(const Args& args);
  /// Stores error bounds of the contract as magnitudes; tolerance() scales them by about 1.
  static void reference(const Args& args, Oracle& oracle);
  static Tolerance tolerance(const Args& args, const RungInfo& rung, Values values);
  static std::vector<Problem> check_problems(Backend backend);
  static std::vector<Problem> bench_problems(Backend backend);
  static Call make(const Problem& problem, Inputs& inputs);
  static Problem describe(const Call& call);
  static std::span<const ArgumentSpec> arguments();
  static void invoke(Context& context, Invocation& invocation, Pick pick);
};

}  // namespace rung
