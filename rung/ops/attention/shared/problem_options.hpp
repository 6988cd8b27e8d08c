// SPDX-License-Identifier: Apache-2.0
// Options that the problems of attention and its gradient share: their tensors, and their text.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "rung/core/bounds.hpp"
#include "rung/core/require.hpp"
#include "rung/harness/inputs.hpp"
#include "rung/harness/problem_writer.hpp"

namespace rung {

/// Returns the key_lengths entry of `lengths` problems: all keys, some, none, too many, or
/// negative.
inline std::int64_t stated_length(std::int64_t batch_element, std::int64_t keys) {
  switch (batch_element % 5) {
    case 0:
      return keys;
    case 1:
      return keys / 3 + 1;
    case 2:
      return 0;
    case 3:
      return keys + 7;
    default:
      return -3;
  }
}

/// Operands of a problem whose batch elements are packed: both (`packed`), those with a row per
/// query (`packed=queries`), or those with a row per key (`packed=keys`).
struct ProblemPacking {
  bool queries = false;
  bool keys = false;

  ProblemPacking(std::string_view op, const Problem& problem) {
    if (!problem.has("packed")) return;
    const std::string_view which = problem.text("packed", "");
    if (!which.empty() && which != "queries" && which != "keys") {
      reject(op, "packed is '" + std::string(which) + "'; accepted: queries, keys, or no value");
    }
    queries = which != "keys";
    keys = which != "queries";
  }
  [[nodiscard]] bool any() const { return queries || keys; }
};

/// Returns the number of rows of a batch element of `packed` problems: all, some, none, or one.
/// `shift` is 1 for keys whose numbers differ from those of the queries.
inline std::int64_t problem_rows(std::int64_t batch_element, std::int64_t rows, int shift) {
  switch ((batch_element + shift) % 4) {
    case 0:
      return rows;
    case 1:
      return rows / 3 + (rows > 0 ? 1 : 0);
    case 2:
      return 0;
    default:
      return rows > 0 ? 1 : 0;
  }
}
/// Returns the number of rows of all batch elements before one.
inline std::int64_t problem_offset(std::int64_t batch_element, std::int64_t rows, int shift) {
  std::int64_t sum = 0;
  for (std::int64_t b = 0; b < batch_element; ++b) sum += problem_rows(b, rows, shift);
  return sum;
}

/// Returns the rows of the largest batch element of the packed problem that has at least `total`
/// rows in all.
inline std::int64_t problem_rows_of(std::int64_t batch, std::int64_t total, int shift) {
  std::int64_t rows = 0;
  while (batch > 0 && problem_offset(batch, rows, shift) < total) {
    // All elements together have at most `batch` times as many rows.
    rows += larger((total - problem_offset(batch, rows, shift)) / batch, std::int64_t{1});
  }
  return rows;
}

/// Returns whether the numbers of keys of a problem with packed keys differ from those of packed
/// queries.
inline int key_shift(const ProblemPacking& packing, std::int64_t queries, std::int64_t keys) {
  return packing.queries && keys == queries ? 0 : 1;
}

/// Returns a bias of heads x queries x keys as one for every batch element, as masks of programs
/// are.
inline ConstTensorRef for_batch(const ConstTensorRef& bias, std::int64_t batch) {
  return {bias.data,
          bias.dtype,
          {batch, bias.shape[0], bias.shape[1], bias.shape[2]},
          {0, bias.strides[0], bias.strides[1], bias.strides[2]},
          bias.device};
}

/// Returns offsets that were made as 1 x (B + 1): a broadcast repeats the first axis, and would
/// repeat the first number.
inline ConstTensorRef as_offsets(const ConstTensorRef& line) {
  return {line.data, line.dtype, {line.shape[1]}, {line.strides[1]}, line.device};
}

/// Extents that the tensors of options depend on; of the largest batch element if packed.
struct OptionShape {
  std::int64_t batch, heads, queries, keys;
  DType arithmetic;  // of lse, slopes, bias and sinks
};

/// Sets the options that the text of a problem gives, and makes their tensors.
template <class Options>
void make_options(const Problem& problem, const ProblemPacking& packing, const OptionShape& shape,
                  Inputs& inputs, Options& options) {
  options.scale = problem.number("scale", 0);
  options.causal = problem.has("causal");
  options.window = problem.integer("window", 0, Problem::count);
  options.soft_cap = problem.number("cap", 0);
  const std::int64_t keys = shape.keys;
  if (problem.has("lengths")) {
    options.key_lengths =
        inputs.input("key_lengths", DType::i32, {shape.batch}, [keys](std::int64_t index, double) {
          return static_cast<double>(stated_length(index, keys));
        });
  }
  const auto offsets = [&](std::string_view tensor, std::int64_t rows, int shift) {
    return as_offsets(
        inputs.input(tensor, DType::i32, {1, shape.batch + 1}, [=](std::int64_t index, double) {
          return static_cast<double>(problem_offset(index, rows, shift));
        }));
  };
  if (packing.queries) options.query_offsets = offsets("query_offsets", shape.queries, 0);
  if (packing.keys) {
    options.key_offsets = offsets("key_offsets", keys, key_shift(packing, shape.queries, keys));
  }
  if (problem.has("slopes")) {
    options.slopes = inputs.input("slopes", shape.arithmetic, {shape.heads},
                                  [](std::int64_t, double uniform) { return uniform / 4; });
  }
  if (problem.has("sinks")) {
    options.sinks = inputs.input("sinks", shape.arithmetic, {shape.heads},
                                 [](std::int64_t, double uniform) { return 4 * uniform - 2; });
  }
  if (!problem.has("bias")) return;
  // Every seventh element hides its key. The last third of the keys of every other query has a
  // number with which programs hide padding.
  const auto value = [keys](std::int64_t index, double uniform) {
    if (index % 7 == 3) return -std::numeric_limits<double>::infinity();
    const bool pads = index / keys % 2 == 1 && index % keys >= keys - keys / 3;
    return pads ? -1e9 : 4 * uniform - 2;
  };
  options.bias =
      for_batch(inputs.input("bias", shape.arithmetic, {shape.heads, shape.queries, keys}, value),
                shape.batch);
}

/// Begins the text of a call's problem, with the options that make_options() reads. A packed call
/// is described by a packed problem of as many rows.
template <class Args>
ProblemWriter write_options(const Args& args) {
  const auto& options = args.options;
  const bool by_queries = args.has_query_offsets();
  const std::int64_t queries =
      by_queries ? problem_rows_of(args.batch(), args.queries(), 0) : args.queries();
  const bool equal = by_queries && args.queries() == args.keys();
  const std::int64_t keys = !args.has_key_offsets() ? args.keys()
                            : equal                 ? queries
                                                    : problem_rows_of(args.batch(), args.keys(), 1);
  ProblemWriter writer(args.q.dtype, {args.batch(), args.heads(), queries, args.width()});
  writer.integer("kv", args.kv_heads(), args.heads())
      .integer("keys", keys, queries)
      .integer("dv", args.value_width(), args.width())
      .number("scale", options.scale, 0)
      .flag("causal", options.causal)
      .integer("window", options.window, 0)
      .number("cap", options.soft_cap, 0)
      .flag("slopes", is_given(options.slopes))
      .flag("bias", is_given(options.bias))
      .flag("sinks", is_given(options.sinks))
      .flag("lengths", is_given(options.key_lengths))
      .flag("packed", by_queries && args.has_key_offsets());
  if (by_queries != args.has_key_offsets()) {
    writer.text("packed", by_queries ? "queries" : "keys", "");
  }
  return writer;
}

}  // namespace rung
