// SPDX-License-Identifier: Apache-2.0
// attention: problems for checks and benchmarks, their inputs, and the command line.
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/ops/attention/op/attention.hpp"
#include "rung/ops/attention/shared/mask.hpp"

namespace rung {
namespace {

/// Returns the key_lengths entry of `lengths` problems: all keys, some, none, too many, or
/// negative.
std::int64_t stated_length(std::int64_t batch_element, std::int64_t keys) {
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

/// Coordinates of an element of k or v.
struct ElementIndex {
  std::int64_t batch_element, head, key, column;
};
struct Order {
  std::int64_t heads, keys, width;
  bool bshd;
  [[nodiscard]] ElementIndex operator()(std::int64_t index) const {
    const std::int64_t row = index / width;
    const std::int64_t key = bshd ? row / heads % keys : row % keys;
    const std::int64_t head = bshd ? row % heads : row / keys % heads;
    return {row / (heads * keys), head, key, index % width};
  }
};

/// Masks of a problem's batch elements.
struct Masks {
  std::int64_t queries, keys;
  bool causal;
  std::int64_t window;
  bool lengths;
  [[nodiscard]] KeyMask<std::int64_t> operator()(std::int64_t batch_element) const {
    const auto stated = static_cast<std::int32_t>(stated_length(batch_element, keys));
    return {queries, lengths ? key_length(stated, keys) : keys, causal, window};
  }
};

/// Returns a maker that stores NaN in keys no query sees. The last key, which only the last query
/// sees under a causal mask, has a score of + or -infinity and NaN in every third column of v. The
/// first key within any window, which the last queries no longer see, has NaN in v in the same
/// columns.
ValueMaker special_values(const Order& order, bool of_v, const Masks& masks) {
  return [=](std::int64_t index, double uniform) {
    const ElementIndex at = order(index);
    const KeyMask<std::int64_t> mask = masks(at.batch_element);
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    if (!mask.is_seen(at.key)) return nan;
    if (at.key == order.keys - 1) {
      if (of_v && at.column % 3 == 0) return nan;
      if (!of_v && at.column == 0) return std::numeric_limits<double>::infinity();
    }
    if (masks.window > 0 && at.key == mask.first_key(0) && at.column % 3 == (of_v ? 1 : 0)) {
      return nan;
    }
    return 4 * uniform - 2;
  };
}

/// Keys of a head whose scores are -infinity: the first half, all, or the last half.
struct MaskedKeys {
  std::int64_t first, last;
  MaskedKeys(const Order& order, const ElementIndex& at) {
    const std::int64_t kind = (at.batch_element * order.heads + at.head) % 3;
    first = kind == 2 ? order.keys / 2 : 0;
    last = kind == 0 ? (order.keys + 1) / 2 : order.keys;
  }
};

/// Returns elements of q for masked problems: column 0 is positive, and column 0 of a masked key is
/// -infinity, so all its scores are. In v, the middle masked key holds NaN and infinities in two of
/// three columns; keys that no query sees hold NaN.
double masked_q(std::int64_t column, double uniform) {
  return column == 0 ? 0.5 + uniform : 4 * uniform - 2;
}
ValueMaker masked_values(const Order& order, bool of_v, const Masks& masks) {
  return [=](std::int64_t index, double uniform) {
    const ElementIndex at = order(index);
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (!masks(at.batch_element).is_seen(at.key)) return nan;
    const MaskedKeys masked(order, at);
    if (!of_v && at.column == 0 && at.key >= masked.first && at.key < masked.last) return -infinity;
    if (of_v && at.key == (masked.first + masked.last) / 2) {
      if (at.column % 3 == 0) return nan;
      if (at.column % 3 == 1) return at.column % 2 == 0 ? infinity : -infinity;
    }
    return 4 * uniform - 2;
  };
}

/// Returns whether a tensor of shape B x H x S x D is stored in the order B x S x H x D.
bool has_heads_inside(const ConstTensorRef& tensor) {
  const Extents& strides = tensor.strides;
  return tensor.shape[1] > 1 && tensor.shape[2] > 1 && strides[1] > 0 && strides[1] < strides[2];
}

// Shapes: prompts, grouped heads, few queries against a long cache; various lengths and widths.
constexpr std::string_view survey_patterns[] = {
    "(bf16*3|f16*2|f32*2|f64) 1..8x1..32x1..8192x(64|96|128*3|192|256)(*2|,causal)",
    ("(bf16*3|f16*2|f32) 1..8x(8|16|32)x1..4096x(64|128*2|256),kv=(1|2|4|8)"
     "(*4|,causal|,causal,window=1..4096)"),
    ("(bf16*3|f16*2|f32) 1..256x(8|16|32|64)x1..16x(64|128*2|256),kv=(1|2|8),keys=1..65536"
     "(*4|,causal|,causal,window=1..8192)"),
    "(bf16*2|f16|f32*2|f64) 1..16x1..16x1..2048x1..256,keys=1..4096(*2|,causal)(*2|,lse)",
    "(bf16|f16|f32) 1..4x1..16x1..1024x1..512,dv=1..512",
};
const Survey<Attention> survey{survey_patterns};

}  // namespace

std::vector<Problem> Attention::check_problems(Backend backend) {
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0x2x3x8",                               // nothing to write
      "f32 2x3x0x8,lse",                           //
      "f32 1x2x5x8,keys=0,lse",                    // no keys: zeros
      "f32 1x1x1x1,lse",                           // one key: o is v
      "f32 1x2x33x64",                             //
      "f32 2x3x17x40,causal,lse",                  // as many queries as keys
      "f32 1x4x9x32,kv=2,keys=70",                 // pairs of heads share keys
      "f32 1x2x70x16,keys=9,causal,lse",           // the first queries see none
      "f32 1x3x9x16,keys=75,causal,kv=1",          // every query sees some keys
      "f32 1x2x3x24,dv=40,keys=100",               // values wider than keys
      "f32 1x2x40x7,dv=5,lse",                     // no multiple of a vector
      "f32 6x2x5x32,keys=50,lengths,lse",          //
      "f32 5x2x20x32,keys=50,lengths,causal,lse",  //
      "f32 1x2x20x300,dv=260",                     // wider than any tile
      "f32 1x1x65x128,scale=0.3",                  //
      "f32 2x2x30x64,causal,special,lse",          //
      "f32 5x2x7x16,keys=33,lengths,special,lse",  //
      "f32 2x3x21x32,bshd,causal",                 //
      "f64 1x2x19x40,keys=50,causal,lse",          //
      "f64 5x2x3x24,kv=1,keys=77,lengths",         //
      "f16 1x2x40x64,lse",                         //
      "f16 2x4x70x32,kv=2,causal",                 //
      "f16 1x2x150x128,keys=130",                  //
      "f16 1x1x33x80,dv=48,keys=65",               //
      "bf16 1x2x64x128,causal,lse",                //
      "bf16 1x1x129x64,keys=300,causal",           //
      "bf16 2x2x35x256,keys=90",                   //
      "bf16 5x2x40x64,keys=100,lengths,causal,lse,special",
      "bf16 1x2x50x96,bshd",                               //
      "bf16 1x2x37x36",                                    // rows not aligned to 16 bytes
      "bf16 2x8x1x128,kv=2,keys=300,lse",                  // a query against a cache
      "f16 6x8x1x64,kv=1,keys=517,lengths",                //
      "bf16 5x16x4x128,kv=2,keys=200,lengths,causal,lse",  // a few
      "f32 2x6x3x64,kv=2,keys=400,causal",                 //
      "f16 1x4x16x256,kv=4,keys=130,causal,special",       //
  });
  const std::vector<Problem> masked = Problem::parse_all({
      "f32 3x2x5x16,keys=40,masked,lse",
      "f32 3x2x9x24,kv=1,keys=70,causal,masked,lse",
      "f32 5x2x7x16,keys=33,lengths,masked,lse",
      "f64 3x1x4x8,keys=20,causal,masked,lse",
      "f16 3x2x20x64,keys=70,causal,masked,lse",
      "bf16 3x4x20x40,kv=2,dv=64,keys=130,lengths,causal,masked,lse",
      "f32 3x4x2x64,kv=1,keys=400,causal,masked,lse",  // split keys: parts see -infinity alone
      "bf16 3x8x1x128,kv=1,keys=300,masked,lse",
  });
  problems.insert(problems.end(), masked.begin(), masked.end());
  const std::vector<Problem> windows = Problem::parse_all({
      "f32 1x2x33x16,causal,window=1,lse",           // o is v
      "f32 2x3x17x40,causal,window=5,lse",           //
      "f32 1x4x9x32,kv=2,keys=70,causal,window=20",  //
      "f32 1x2x70x16,keys=9,causal,window=4,lse",    // the first queries see none
      "f32 1x2x20x24,causal,window=100",             // a window of more keys than exist
      "f32 5x2x20x32,keys=50,lengths,causal,window=13,lse",
      "f32 5x2x9x16,keys=33,lengths,causal,window=6,special,lse",
      "f32 1x1x150x16,keys=200,causal,window=70",  // wider than a tile of keys
      "f32 2x6x3x64,kv=2,keys=400,causal,window=90,special",
      "f32 3x2x9x24,kv=1,keys=70,causal,window=25,masked,lse",
      "f64 1x2x19x40,keys=50,causal,window=11,lse",
      "f16 2x4x70x32,kv=2,causal,window=17",
      "f16 1x2x16x128,keys=200,causal,window=199",  // hides one key, from the last query of a warp
      "bf16 2x1x64x64,keys=597,lengths,causal,window=199,special",  // and of a warpgroup
      "f16 1x1x100x256,keys=170,causal,window=33",
      "bf16 1x1x200x64,keys=210,causal,window=130,special",
      "bf16 1x2x150x128,keys=260,causal,window=80,lse,special",
      "bf16 5x2x40x64,keys=100,lengths,causal,window=21,lse,special",
      "bf16 3x4x20x40,kv=2,dv=64,keys=130,lengths,causal,window=31,masked,lse",
      "bf16 2x8x1x128,kv=2,keys=300,causal,window=100,lse,masked",  // a query against a cache
      "bf16 5x16x4x128,kv=2,keys=200,lengths,causal,window=70,special,lse",
  });
  problems.insert(problems.end(), windows.begin(), windows.end());
  if (backend == Backend::simt) return problems;
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 1x2x257x64,causal",
      "f32 1x4x130x128,kv=2",
      "bf16 1x2x300x128,kv=1,causal,lse",
      "f16 1x2x333x64",
      "bf16 1x1x260x256,causal",
      "bf16 17x8x1x128,kv=2,keys=700,lengths",
      "f16 1x32x1x128,kv=4,keys=3000",
      "f64 1x2x130x64,causal",
      "f16 1x2x700x64,keys=900,causal,window=256,special",
      "bf16 1x2x600x128,kv=1,causal,window=150,lse",
      "bf16 1x1x260x256,causal,window=100",
      "bf16 17x8x1x128,kv=2,keys=3000,lengths,causal,window=1500",
      "f32 1x2x3x16,keys=3000,causal,window=1200,masked,lse",
      "f32 3x2x2x16,keys=1100,masked,lse",  // enough keys to be split on a CPU
      "bf16 3x8x1x64,kv=1,keys=2100,lengths,masked,lse",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  return problems;
}

std::vector<Problem> Attention::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"f32 1x8x1024x64", "f32 1x8x1024x128,causal",
                                 "bf16 1x8x1024x128,causal", "f32 8x32x1x128,kv=8,keys=4096",
                                 "bf16 8x32x1x128,kv=8,keys=4096"});
    case Backend::cuda:
      return Problem::parse_all(
          {"bf16 2x32x8192x64", "bf16 2x32x8192x128", "bf16 2x32x8192x128,causal",
           "bf16 2x16x8192x256,causal", "f16 2x32x2048x128,causal", "f32 1x16x4096x64",
           "bf16 32x64x1x128,kv=8,keys=8192", "bf16 128x64x1x128,kv=8,keys=32768",
           "bf16 32x64x8x128,kv=8,keys=8192,causal"});
    case Backend::simt:
      return Problem::parse_all({"f32 1x2x64x64", "bf16 1x2x64x64,causal"});
  }
  return {};
}

Attention::Call Attention::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, 4,
                 {"kv", "keys", "dv", "scale", "causal", "window", "lse", "lengths", "bshd",
                  "special", "masked"});
  const std::int64_t batch = problem.extents[0];
  const std::int64_t heads = problem.extents[1];
  const std::int64_t queries = problem.extents[2];
  const std::int64_t width = problem.extents[3];
  const std::int64_t kv_heads = problem.integer("kv", heads, Problem::count);
  const std::int64_t keys = problem.integer("keys", queries, Problem::count);
  const std::int64_t value_width = problem.integer("dv", width, Problem::count);
  const bool bshd = problem.has("bshd");
  const bool lengths = problem.has("lengths");
  const bool causal = problem.has("causal");
  const std::int64_t window = problem.integer("window", 0, Problem::count);
  const Masks masks{queries, keys, causal, causal ? window_among(window, keys) : 0, lengths};

  // Adversarial scores must leave several weights above zero, or v would hardly affect o.
  double narrowed = 1.0;
  if (inputs.variant().values == Values::adversarial) {
    narrowed = problem.dtype == DType::f64 ? 0x1p-98 : problem.dtype == DType::f16 ? 1 : 0x1p-28;
  }
  const auto input = [&](std::string_view tensor, std::int64_t of_heads, std::int64_t rows,
                         std::int64_t columns, double scale, const ValueMaker& maker) {
    const Extents shape =
        bshd ? Extents{batch, rows, of_heads, columns} : Extents{batch, of_heads, rows, columns};
    ConstTensorRef made = maker ? inputs.input(tensor, problem.dtype, shape, maker)
                                : inputs.input(tensor, problem.dtype, shape, scale);
    if (bshd) {
      std::swap(made.shape[1], made.shape[2]);
      std::swap(made.strides[1], made.strides[2]);
    }
    return made;
  };
  ValueMaker q_maker;
  ValueMaker k_maker;
  ValueMaker v_maker;
  if (problem.has("special")) {
    k_maker = special_values({kv_heads, keys, width, bshd}, false, masks);
    v_maker = special_values({kv_heads, keys, value_width, bshd}, true, masks);
  }
  if (problem.has("masked")) {
    q_maker = [width](std::int64_t index, double uniform) {
      return masked_q(index % width, uniform);
    };
    k_maker = masked_values({kv_heads, keys, width, bshd}, false, masks);
    v_maker = masked_values({kv_heads, keys, value_width, bshd}, true, masks);
  }
  Call call;
  call.q = input("q", heads, queries, width, narrowed, q_maker);
  call.k = input("k", kv_heads, keys, width, narrowed, k_maker);
  call.v = input("v", kv_heads, keys, value_width, 1.0, v_maker);
  if (lengths) {
    call.options.key_lengths =
        inputs.input("key_lengths", DType::i32, {batch}, [keys](std::int64_t index, double) {
          return static_cast<double>(stated_length(index, keys));
        });
  }
  call.o = inputs.output("o", problem.dtype, {batch, heads, queries, value_width});
  if (problem.has("lse")) {
    const DType arithmetic = problem.dtype == DType::f64 ? DType::f64 : DType::f32;
    call.options.lse = inputs.output("lse", arithmetic, {batch, heads, queries});
  }
  call.options.scale = problem.number("scale", 0);
  call.options.causal = causal;
  call.options.window = window;
  return call;
}

Problem Attention::describe(const Call& call) {
  const AttentionOptions& options = call.options;
  const Extents& q = call.q.shape;
  return ProblemWriter(call.q.dtype, q)
      .integer("kv", call.k.shape[1], q[1])
      .integer("keys", call.k.shape[2], q[2])
      .integer("dv", call.v.shape[3], q[3])
      .number("scale", options.scale, 0)
      .flag("causal", options.causal)
      .integer("window", options.window, 0)
      .flag("lse", is_given(options.lse))
      .flag("lengths", is_given(options.key_lengths))
      .flag("bshd", has_heads_inside(call.q) || has_heads_inside(call.k))
      .problem();
}

std::span<const ArgumentSpec> Attention::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 7> specs{{
      {"q", Kind::tensor, true, "queries, B x H x Sq x D"},
      {"k", Kind::tensor, true, "keys, B x Hk x Sk x D"},
      {"v", Kind::tensor, true, "values, B x Hk x Sk x Dv"},
      {"lengths", Kind::tensor, false, "i32: how many keys each batch element has"},
      {"scale", Kind::number, false, "factor of the scores; default 1/sqrt(D)"},
      {"causal", Kind::flag, false, "a query sees no key behind it; the last query all"},
      {"window", Kind::number, false, "with causal: keys per query, the last ones; default all"},
  }};
  return specs;
}

void Attention::invoke(Context& context, Invocation& call, Pick pick) {
  const ConstTensorRef q = call.tensors.at("q");
  const ConstTensorRef v = call.tensors.at("v");
  AttentionOptions options;
  options.scale = call.number("scale", 0);
  options.causal = call.has("causal");
  options.window = call.integer(name, "window", 0, Problem::count);
  if (call.has("lengths")) options.key_lengths = call.tensors.at("lengths");
  Extents shape = q.shape;
  // attention() rejects wrong ranks with a message.
  if (shape.rank == 4 && v.rank() == 4) shape[3] = v.shape[3];
  call.result = Tensor(q.dtype, shape, context.device());
  attention(context, q, call.tensors.at("k"), v, call.result, options, pick);
}

}  // namespace rung
