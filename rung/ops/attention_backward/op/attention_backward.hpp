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
      "         after another), bshd (what is read is in memory as BxSxHxD), special (values: NaN\n"
      "         in keys that no query sees, and queries that see no key)";

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
  struct Args : Call {
    [[nodiscard]] std::int64_t batch() const {
      return has_query_offsets() ? options.query_offsets.shape[0] - 1 : q.shape[0];
    }
    [[nodiscard]] std::int64_t heads() const { return q.shape[1]; }
    /// Returns the number of queries of a batch element, keys() that of keys; of all of them if
    /// they are packed.
    [[nodiscard]] std::int64_t queries() const { return q.shape[2]; }
    [[nodiscard]] std::int64_t width() const { return q.shape[3]; }  // D
    [[nodiscard]] std::int64_t kv_heads() const { return k.shape[1]; }
    [[nodiscard]] std::int64_t keys() const { return k.shape[2]; }
    [[nodiscard]] std::int64_t value_width() const { return v.shape[3]; }  // Dv
    /// Returns the number of heads of q per head of k and v; 0 if k has no heads.
    [[nodiscard]] std::int64_t group() const { return kv_heads() == 0 ? 0 : heads() / kv_heads(); }
    [[nodiscard]] bool has_lengths() const { return options.key_lengths.data != nullptr; }
    [[nodiscard]] bool has_query_offsets() const { return options.query_offsets.data != nullptr; }
    [[nodiscard]] bool has_key_offsets() const { return options.key_offsets.data != nullptr; }
    [[nodiscard]] bool is_packed() const { return has_query_offsets() || has_key_offsets(); }
    [[nodiscard]] bool has_sink_gradient() const { return options.dsinks.data != nullptr; }
    /// Returns whether a score is scale times the product of a query and a key, and nothing else.
    [[nodiscard]] bool has_plain_scores() const {
      return options.soft_cap == 0 && options.slopes.data == nullptr &&
             options.bias.data == nullptr;
    }
    /// Returns the mean number of queries per batch element; typical_keys() that of keys,
    /// key_lengths ignored.
    [[nodiscard]] std::int64_t typical_queries() const;
    [[nodiscard]] std::int64_t typical_keys() const;
    /// Returns the number of visible (query, key) pairs of one head of a batch element of typical
    /// size, key_lengths ignored.
    [[nodiscard]] double visible_pairs() const;
    /// Returns the maximum number of keys that `adjacent` adjacent queries see together.
    [[nodiscard]] std::int64_t most_keys(std::int64_t adjacent) const;
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
