// SPDX-License-Identifier: Apache-2.0
// attention_backward: problems for checks and benchmarks, their inputs, and the command line.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rung/core/bounds.hpp"
#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/ops/attention/attention.hpp"
#include "rung/ops/attention/shared/mask.hpp"
#include "rung/ops/attention/shared/problem_options.hpp"
#include "rung/ops/attention_backward/op/attention_backward.hpp"

namespace rung {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Extents of a problem, and its mask.
struct ProblemShape {
  std::int64_t batch, heads, queries, width, kv_heads, keys, value_width;
  bool causal, lengths, bshd;
  ProblemPacking packing;
  std::int64_t window;

  explicit ProblemShape(const Problem& problem)
      : batch(problem.extents[0]),
        heads(problem.extents[1]),
        queries(problem.extents[2]),
        width(problem.extents[3]),
        kv_heads(problem.integer("kv", heads, Problem::count)),
        keys(problem.integer("keys", queries, Problem::count)),
        value_width(problem.integer("dv", width, Problem::count)),
        causal(problem.has("causal")),
        lengths(problem.has("lengths")),
        bshd(problem.has("bshd")),
        packing(AttentionBackward::name, problem),
        window(problem.integer("window", 0, Problem::count)) {}

  /// Packed operands have one element on the first axis, with the rows of all.
  [[nodiscard]] std::int64_t query_elements() const { return packing.queries ? 1 : batch; }
  [[nodiscard]] std::int64_t query_rows() const {
    return packing.queries ? problem_offset(batch, queries, 0) : queries;
  }
  [[nodiscard]] std::int64_t key_elements() const { return packing.keys ? 1 : batch; }
  [[nodiscard]] std::int64_t key_rows() const {
    return packing.keys ? problem_offset(batch, keys, key_shift(packing, queries, keys)) : keys;
  }
  [[nodiscard]] KeyMask<std::int64_t> mask(std::int64_t batch_element) const {
    const auto stated = static_cast<std::int32_t>(stated_length(batch_element, keys));
    return {queries, lengths ? key_length(stated, keys) : keys, causal,
            causal ? window_among(window, keys) : 0};
  }
};

/// Coordinates of an element of B x `heads` x `rows` x `columns`, computed from its index in
/// memory; the order in memory is B x rows x heads x columns if bshd.
struct ElementPlace {
  std::int64_t batch_element, head, row, column;
  ElementPlace(std::int64_t index, std::int64_t heads, std::int64_t rows, std::int64_t columns,
               bool bshd)
      : batch_element(index / columns / rows / heads),
        head(bshd ? index / columns % heads : index / columns / rows % heads),
        row(bshd ? index / columns / heads % rows : index / columns % rows),
        column(index % columns) {}
};

/// Results of attention() on host copies of q, k and v.
struct ForwardResults {
  Tensor o, lse;
};

const Inputs::Entry& entry_named(const Inputs& inputs, std::string_view name, std::size_t* index) {
  const std::vector<Inputs::Entry>& entries = inputs.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].name == name) {
      *index = i;
      return entries[i];
    }
  }
  reject(AttentionBackward::name, fmt::format("no tensor '{}' was made", name));
}

ForwardResults forward_results(const AttentionBackward::Call& call, const ProblemShape& shape,
                               const Inputs& inputs) {
  const auto host = [&](std::string_view name) {
    std::size_t index = 0;
    entry_named(inputs, name, &index);
    return inputs.host(index);
  };
  const Tensor hosts[] = {host("q"), host("k"), host("v")};
  const auto ref = [&](const Tensor& tensor) {
    ConstTensorRef made = tensor;
    if (shape.bshd) {
      std::swap(made.shape[1], made.shape[2]);
      std::swap(made.strides[1], made.strides[2]);
    }
    return made;
  };
  ForwardResults results{Tensor(call.q.dtype, {shape.query_elements(), shape.heads,
                                               shape.query_rows(), shape.value_width}),
                         Tensor(call.q.dtype == DType::f64 ? DType::f64 : DType::f32,
                                {shape.query_elements(), shape.heads, shape.query_rows()})};
  AttentionOptions options{.scale = call.options.scale,
                           .causal = call.options.causal,
                           .window = call.options.window,
                           .soft_cap = call.options.soft_cap,
                           .lse = results.lse};
  std::vector<Tensor> copies;
  copies.reserve(6);
  const auto copy_if = [&](const ConstTensorRef& given, std::string_view name) {
    if (given.data == nullptr) return ConstTensorRef{};
    copies.push_back(host(name));
    return ConstTensorRef(copies.back());
  };
  options.key_lengths = copy_if(call.options.key_lengths, "key_lengths");
  if (shape.packing.queries) {
    options.query_offsets = as_offsets(copy_if(call.options.query_offsets, "query_offsets"));
  }
  if (shape.packing.keys) {
    options.key_offsets = as_offsets(copy_if(call.options.key_offsets, "key_offsets"));
  }
  options.slopes = copy_if(call.options.slopes, "slopes");
  options.sinks = copy_if(call.options.sinks, "sinks");
  options.bias = copy_if(call.options.bias, "bias");
  if (options.bias.data != nullptr) options.bias = for_batch(options.bias, shape.batch);
  Context context = Context::cpu();
  attention(context, ref(hosts[0]), ref(hosts[1]), ref(hosts[2]), results.o, options);
  return results;
}

/// Returns an element of a C-contiguous floating-point tensor.
double element_of(const Tensor& tensor, std::int64_t index) {
  return visit<float, double, f16, bf16>(tensor.dtype(), [&]<class T>() {
    return static_cast<double>(static_cast<Accumulator<T>>(tensor.data<T>()[index]));
  });
}

/// Returns whether a tensor of shape B x H x S x D is stored in the order B x S x H x D.
bool has_heads_inside(const ConstTensorRef& tensor) {
  const Extents& strides = tensor.strides;
  return tensor.shape[1] > 1 && tensor.shape[2] > 1 && strides[1] > 0 && strides[1] < strides[2];
}

// Shapes as in training: prompts, grouped heads, Sk other than Sq, various widths.
constexpr std::string_view survey_patterns[] = {
    "(bf16*3|f16*2|f32*2|f64) 1..8x1..32x1..4096x(64*2|128*3|96|256)(*2|,causal)",
    ("(bf16*3|f16*2|f32) 1..8x(8|16|32)x1..4096x(64|128*2),kv=(1|2|4|8)"
     "(*4|,causal|,causal,window=1..4096)"),
    "(bf16*2|f16|f32*2|f64) 1..16x1..16x1..1024x1..256,keys=1..2048(*2|,causal)",
    "(bf16|f16|f32) 1..4x1..16x1..1024x1..256,dv=1..256",
};
const Survey<AttentionBackward> survey{survey_patterns};

}  // namespace

std::vector<Problem> AttentionBackward::check_problems(Backend backend) {
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0x2x3x8",                          // nothing to write
      "f32 2x0x3x8,kv=1",                     // dk and dv are zero
      "f32 2x2x0x8",                          //
      "f32 1x2x0x8,keys=5",                   // no queries: dk and dv are zero
      "f32 1x2x5x8,keys=0",                   // no keys: dq is zero
      "bf16 1x2x0x64,keys=5,causal",          //
      "bf16 1x2x5x64,keys=0,causal",          //
      "f64 1x2x5x8,keys=0,causal",            //
      "f32 1x3x1x2",                          // one key: ds is 0
      "f32 1x1x1x2,keys=3",                   //
      "f32 1x2x9x64",                         //
      "f32 2x2x17x40,causal",                 // as many queries as keys
      "f32 1x4x5x32,kv=2,keys=20",            // pairs of heads share keys
      "f32 1x4x6x16,kv=1,keys=7,causal",      //
      "f32 1x2x20x16,keys=9,causal",          // the first queries see none
      "f32 1x2x20x16,keys=9,causal,special",  //
      "f32 1x3x5x16,keys=30,causal,kv=1",     // every query sees some keys
      "f32 1x2x3x24,dv=40,keys=18",           // values wider than keys
      "f32 1x2x11x7,dv=5",                    // no multiple of a vector
      "f32 6x2x3x16,keys=9,lengths",          //
      "f32 5x2x6x16,keys=9,lengths,special",  //
      "f32 5x2x9x16,keys=9,lengths,causal",   //
      "f32 5x2x12x16,keys=7,lengths,causal,special",
      "f32 5x4x4x8,kv=2,keys=9,lengths,causal,special",
      "f32 1x1x5x150,dv=140",                     // wider than a tile
      "f32 1x1x70x20",                            // more queries and keys than a tile
      "f32 1x1x70x12,causal",                     //
      "f32 1x1x3x16,keys=140",                    //
      "f32 1x1x140x8,keys=5",                     //
      "f32 1x1x9x32,scale=0.3",                   //
      "f32 2x2x7x16,bshd,causal",                 //
      "f32 2x4x5x16,kv=2,bshd,lengths",           //
      "f64 1x2x9x20,keys=12,causal",              //
      "f64 5x2x3x8,kv=1,keys=9,lengths,special",  //
      "f64 1x1x66x7,keys=65",                     //
      "f64 1x1x5x70,dv=66",                       //
      "f64 5x1x4x8,keys=5,lengths,causal",        //
      "f16 1x1x16x64",                            //
      "f16 1x4x20x32,kv=2,causal",                //
      "f16 1x1x40x128,keys=33",                   //
      "f16 1x1x33x80,dv=48,keys=20",              //
      "f16 1x1x9x128,dv=64,keys=20,causal",       //
      "f16 5x1x9x64,keys=12,lengths,causal,special",
      "f16 5x2x4x64,kv=1,keys=20,lengths,special",  //
      "f16 1x1x33x64,keys=9,causal,special",        // the first queries see none
      "f16 1x1x7x36,keys=19",                       // rows not aligned to 16 bytes
      "f16 1x2x5x33,bshd,causal",                   //
      "bf16 1x1x16x128,causal",                     //
      "bf16 1x1x65x64,keys=80,causal",              //
      "bf16 1x1x80x64,keys=66,causal",              //
      "bf16 1x1x12x160,keys=9",                     // wider than tensor-core tiles
      "bf16 5x1x20x64,keys=30,lengths,causal",      //
      "bf16 5x1x20x64,keys=30,lengths,special",     //
      "bf16 5x2x3x128,kv=1,keys=40,lengths,causal,special",
      "bf16 1x2x20x96,bshd",                    //
      "bf16 2x4x5x64,kv=2,bshd,causal",         //
      "bf16 1x8x1x64,kv=2,keys=70",             // a query against a cache
      "bf16 1x1x130x64,keys=3",                 //
      "bf16 1x1x3x64,keys=130",                 //
      "bf16 1x1x17x24,dv=100",                  //
      "bf16 1x3x33x40,kv=1,causal,scale=0.05",  //
      "bf16 2x1x9x1,dv=1",                      //
      "bf16 1x1x130x128,keys=96",               // rounds of a ring of stages, ragged tiles
      "bf16 1x1x70x128,keys=71,causal",  // one query of the first tile sees a key after the 64th
      "f16 1x2x200x64,kv=1,keys=130,causal",            //
      "bf16 5x30x3x64,keys=40,lengths,causal,special",  // several turns of a persistent block
  });
  const std::vector<Problem> windows = Problem::parse_all({
      "f32 1x2x9x8,causal,window=1",    // one key each: ds is 0
      "f32 2x2x17x40,causal,window=5",  //
      "f32 1x4x6x16,kv=1,keys=7,causal,window=3",
      "f32 1x2x20x16,keys=9,causal,window=4,special",       // the first queries see no key
      "f32 1x3x5x16,keys=90,causal,kv=1,window=8,special",  // most keys are seen by none
      "f32 1x2x9x24,causal,window=100",                     // a window of more keys than exist
      "f32 5x2x12x16,keys=17,lengths,causal,window=6,special",
      "f32 1x1x140x8,keys=150,causal,window=70",  // wider than a tile
      "f64 1x2x20x24,keys=30,causal,window=7,special",
      "f16 1x2x70x32,keys=80,causal,window=17,special",
      "bf16 1x4x40x64,kv=2,causal,window=21",
      "bf16 1x2x16x64,keys=100,causal,window=99",  // hides one key, from the last query of a warp
      "bf16 1x1x140x64,keys=150,causal,window=70,special",
      "bf16 5x2x20x128,keys=40,lengths,causal,window=9,special",
      "bf16 1x8x1x64,kv=2,keys=150,causal,window=30,special",
      "bf16 1x1x390x64,keys=400,causal,window=130,special",
      "f16 2x1x130x128,keys=410,lengths,causal,window=270,special",
      "bf16 1x1x140x128,causal,window=127",          // hides one query of a tile from 64 keys
      "bf16 1x1x64x128,keys=200,causal,window=199",  // hides one key of a tile from 64 queries
  });
  problems.insert(problems.end(), windows.begin(), windows.end());
  const std::vector<Problem> rules = Problem::parse_all({
      "f32 1x2x9x16,keys=20,cap=2",
      "f32 2x4x12x8,kv=2,causal,cap=0.5",
      "f32 2x3x9x16,keys=15,slopes",  // keys after the diagonal, too
      "f32 2x2x10x8,keys=13,bias",
      "f32 2x3x15x16,causal,sinks",
      "f32 1x2x20x16,keys=9,causal,sinks,special",  // the first queries see only the sink
      "f32 2x2x5x16,keys=0,sinks",
      "f32 5x4x11x8,kv=2,keys=20,lengths,causal,window=6,cap=3,slopes,bias,sinks",
      "f32 1x2x70x12,keys=80,causal,cap=2,slopes,sinks",
      "f64 2x4x9x8,kv=2,keys=20,causal,cap=2,slopes,bias,sinks",
      "f16 1x2x40x64,causal,cap=2,sinks",
      "f16 5x2x70x64,keys=90,lengths,causal,special,cap=2",
      "bf16 1x4x140x64,kv=2,causal,window=70,cap=1,sinks",
      "bf16 1x2x130x128,keys=200,causal,cap=3",
      "f16 1x2x33x64,keys=40,slopes,bias",
      "bf16 2x2x20x128,causal,bias,sinks",
      "bf16 1x2x80x64,causal,window=30,cap=3,slopes,sinks",
      "bf16 1x1x130x128,keys=140,cap=1,bias",
      "bf16 5x2x20x64,keys=30,lengths,causal,special,cap=4,slopes,sinks",
      "bf16 1x1x12x160,keys=9,cap=2,slopes",
  });
  problems.insert(problems.end(), rules.begin(), rules.end());
  const std::vector<Problem> packed = Problem::parse_all({
      "f32 5x2x9x16,packed",
      "f32 4x4x12x8,kv=2,packed,causal,sinks",
      "f32 5x2x12x16,keys=30,packed,causal,window=7,cap=2,slopes,sinks",
      "f32 3x2x70x16,keys=9,packed,causal",  // more queries than keys
      "f32 0x2x3x8,packed",
      "f64 5x2x11x8,packed,causal,bshd",
      "f16 5x4x70x64,kv=2,packed,causal",
      "bf16 5x2x80x64,keys=50,packed",
      "bf16 4x2x70x128,packed,causal,window=33,bshd",
      "bf16 5x2x37x36,packed,causal",                      // rows not aligned to 16 bytes
      "bf16 6x2x150x64,kv=1,keys=70,packed,causal,sinks",  // more queries than keys
      "f16 7x1x290x128,keys=200,packed,causal,window=90,cap=2",
      "bf16 9x3x3x64,packed,cap=1",
      "f32 5x2x9x16,keys=12,packed=keys",
      "f32 4x4x6x8,kv=2,keys=20,packed=keys,causal,window=7,cap=2,slopes,sinks",
      "f64 5x2x7x8,packed=keys,causal,bshd",
      "f16 5x4x40x64,kv=2,keys=70,packed=keys,causal",
      "bf16 4x2x20x128,keys=90,packed=keys,causal,window=33,bshd",
      "bf16 5x2x17x36,packed=keys",  // rows not aligned to 16 bytes
      "f32 5x4x9x16,kv=2,keys=12,packed=queries,lengths,causal",
      "bf16 5x2x80x64,kv=1,keys=50,packed=queries,lengths,causal,cap=2",
  });
  problems.insert(problems.end(), packed.begin(), packed.end());
  if (backend == Backend::simt) return problems;
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 1x2x257x64,causal",
      "f32 1x4x130x128,kv=2",
      "f32 2x2x70x96,keys=300,causal",
      "f32 1x1x1500x16",  // enough keys to be split on a CPU
      "f32 1x2x40x32,kv=1,keys=1100,causal",
      "bf16 1x2x300x128,kv=1,causal",
      "f16 1x2x333x64",
      "bf16 1x1x260x256,causal",
      "bf16 5x2x150x64,keys=200,lengths,causal,special",
      "f64 1x2x130x64,causal",
      "f32 1x2x40x32,kv=1,keys=1100,causal,window=300,special",
      "f16 1x2x333x64,causal,window=65",
      "bf16 1x2x300x128,kv=1,keys=350,causal,window=100,special",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  return problems;
}

std::vector<Problem> AttentionBackward::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"f32 1x8x1024x64", "f32 1x8x1024x128,causal",
                                 "bf16 1x8x1024x128,causal", "f32 2x16x512x64,kv=4"});
    case Backend::cuda:
      return Problem::parse_all({"bf16 2x32x8192x64", "bf16 2x32x8192x128",
                                 "bf16 2x32x8192x128,causal", "f16 4x32x2048x128,causal",
                                 "bf16 4x32x4096x128,kv=8,causal", "f32 1x16x4096x64"});
    case Backend::simt:
      return Problem::parse_all({"f32 1x2x64x64", "bf16 1x2x64x64,causal"});
  }
  return {};
}

AttentionBackward::Call AttentionBackward::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, 4,
                 {"kv", "keys", "dv", "scale", "causal", "window", "cap", "slopes", "bias", "sinks",
                  "lengths", "packed", "bshd", "special"});
  const ProblemShape shape(problem);
  const bool special = problem.has("special");
  if (shape.packing.keys && (special || shape.lengths || problem.has("bias"))) {
    reject(name, "packed is given; accepted without special, lengths and bias");
  }
  if (shape.packing.queries && (special || problem.has("bias"))) {
    reject(name, "packed=queries is given; accepted without special and bias");
  }
  const DType dtype = problem.dtype;
  const bool adversarial = inputs.variant().values == Values::adversarial;

  // Adversarial scores must leave several weights above zero; products of three adversarial values,
  // and their sums in f16, must not overflow.
  const double narrow_scores = !adversarial          ? 1
                               : dtype == DType::f64 ? 0x1p-98
                               : dtype == DType::f16 ? 1
                                                     : 0x1p-28;
  const double narrow_dout = adversarial && dtype == DType::f16 ? 0x1p-4 : 1;
  const auto input = [&](std::string_view tensor, std::int64_t elements, std::int64_t heads,
                         std::int64_t rows, std::int64_t columns, double scale,
                         const ValueMaker& maker) {
    const Extents extents = shape.bshd ? Extents{elements, rows, heads, columns}
                                       : Extents{elements, heads, rows, columns};
    ConstTensorRef made = maker ? inputs.input(tensor, dtype, extents, maker)
                                : inputs.input(tensor, dtype, extents, scale);
    if (shape.bshd) {
      std::swap(made.shape[1], made.shape[2]);
      std::swap(made.strides[1], made.strides[2]);
    }
    return made;
  };
  // Rows without effect hold NaN: keys that no query sees, and queries that see no key.
  const auto key_maker = [&](std::int64_t columns) {
    return [=](std::int64_t index, double uniform) {
      const ElementPlace at(index, shape.kv_heads, shape.keys, columns, shape.bshd);
      return shape.mask(at.batch_element).is_seen(at.row) ? 4 * uniform - 2 : nan;
    };
  };
  const auto query_maker = [&](std::int64_t columns) {
    return [=](std::int64_t index, double uniform) {
      const ElementPlace at(index, shape.heads, shape.queries, columns, shape.bshd);
      return shape.mask(at.batch_element).end_key(at.row) > 0 ? 4 * uniform - 2 : nan;
    };
  };
  const auto maker_if_special = [&](auto maker) {
    return special ? ValueMaker(maker) : ValueMaker();
  };

  AttentionBackward::Call call;
  AttentionBackwardOptions& options = call.options;
  const std::int64_t query_rows = shape.query_rows();
  const std::int64_t key_rows = shape.key_rows();
  const std::int64_t elements = shape.query_elements();
  const std::int64_t key_elements = shape.key_elements();
  call.q = input("q", elements, shape.heads, query_rows, shape.width, narrow_scores,
                 maker_if_special(query_maker(shape.width)));
  call.k = input("k", key_elements, shape.kv_heads, key_rows, shape.width, narrow_scores,
                 maker_if_special(key_maker(shape.width)));
  call.v = input("v", key_elements, shape.kv_heads, key_rows, shape.value_width, 1.0,
                 maker_if_special(key_maker(shape.value_width)));
  const DType arithmetic = dtype == DType::f64 ? DType::f64 : DType::f32;
  make_options(problem, shape.packing,
               {shape.batch, shape.heads, shape.queries, shape.keys, arithmetic}, inputs, options);

  // o and lse come from attention() unless that takes too long; the gradients are defined for any o
  // and lse.
  const double operations = 2 * static_cast<double>(shape.batch * shape.heads) *
                            static_cast<double>(shape.queries * shape.keys) *
                            static_cast<double>(shape.width + shape.value_width);
  const bool has_forward = inputs.filling() == Filling::values && operations < 0x1p34 &&
                           shape.width > 0 && shape.value_width > 0 && shape.kv_heads > 0 &&
                           shape.heads % shape.kv_heads == 0;
  std::shared_ptr<const ForwardResults> results;  // makers outlive this function
  if (has_forward) {
    results = std::make_shared<const ForwardResults>(forward_results(call, shape, inputs));
  }
  call.o = input(
      "o", elements, shape.heads, query_rows, shape.value_width, 1.0,
      [=](std::int64_t index, double uniform) {
        const ElementPlace at(index, shape.heads, query_rows, shape.value_width, shape.bshd);
        if (special && shape.mask(at.batch_element).end_key(at.row) == 0) return nan;
        if (results == nullptr) return 0.25 * (uniform - 0.5);
        const std::int64_t row = (at.batch_element * shape.heads + at.head) * query_rows + at.row;
        return element_of(results->o, row * shape.value_width + at.column);
      });
  call.lse = inputs.input(
      "lse", arithmetic, {elements, shape.heads, query_rows}, [=](std::int64_t index, double) {
        const ElementPlace at(index, shape.heads, query_rows, 1, false);
        const auto mask = shape.mask(shape.packing.any() ? 0 : at.batch_element);
        const std::int64_t seen = mask.end_key(at.row) - mask.first_key(at.row);
        if (special && seen == 0) return nan;
        if (results != nullptr) return element_of(results->lse, index);
        // Typical lse of standard normal scores.
        return std::log(static_cast<double>(larger(seen, std::int64_t{1}))) + 0.5;
      });
  call.dout = input("dout", elements, shape.heads, query_rows, shape.value_width, narrow_dout,
                    maker_if_special(query_maker(shape.value_width)));
  call.dq = inputs.output("dq", dtype, {elements, shape.heads, query_rows, shape.width});
  call.dk = inputs.output("dk", dtype, {key_elements, shape.kv_heads, key_rows, shape.width});
  call.dv = inputs.output("dv", dtype, {key_elements, shape.kv_heads, key_rows, shape.value_width});
  if (problem.has("sinks")) options.dsinks = inputs.output("dsinks", arithmetic, {shape.heads});
  return call;
}

Problem AttentionBackward::describe(const Call& call) {
  Args args;
  static_cast<Call&>(args) = call;
  return write_options(args)
      .flag("bshd", has_heads_inside(call.q) || has_heads_inside(call.k))
      .problem();
}

std::span<const ArgumentSpec> AttentionBackward::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 17> specs{{
      {"q", Kind::tensor, true, "queries, B x H x Sq x D"},
      {"k", Kind::tensor, true, "keys, B x Hk x Sk x D"},
      {"v", Kind::tensor, true, "values, B x Hk x Sk x Dv"},
      {"o", Kind::tensor, true, "the result of attention"},
      {"lse", Kind::tensor, true, "its log sum exp of the scores, B x H x Sq"},
      {"dout", Kind::tensor, true, "the gradient of o"},
      {"of", Kind::text, false, "the gradient to write; default q", "q|k|v|sinks"},
      {"lengths", Kind::tensor, false, "i32: how many keys each batch element has"},
      {"query_offsets", Kind::tensor, false, "i32, B + 1: q is packed, 1 x H x T x D"},
      {"key_offsets", Kind::tensor, false, "i32, B + 1: k and v are packed, 1 x Hk x Tk x D"},
      {"slopes", Kind::tensor, false, "H: of ALiBi"},
      {"bias", Kind::tensor, false, "B x H x Sq x Sk: added to the scores"},
      {"sinks", Kind::tensor, false, "H: a score without a value; for their gradient"},
      {"cap", Kind::number, false, "soft cap of the scores; default none"},
      {"scale", Kind::number, false, "factor of the scores; default 1/sqrt(D)"},
      {"causal", Kind::flag, false, "a query sees no key behind it; the last query all"},
      {"window", Kind::number, false, "with causal: keys per query, the last ones; default all"},
  }};
  return specs;
}

void AttentionBackward::invoke(Context& context, Invocation& call, Pick pick) {
  const ConstTensorRef q = call.tensors.at("q");
  const ConstTensorRef k = call.tensors.at("k");
  const ConstTensorRef v = call.tensors.at("v");
  AttentionBackwardOptions options;
  options.scale = call.number("scale", 0);
  options.causal = call.has("causal");
  options.window = call.integer(name, "window", 0, Problem::count);
  options.soft_cap = call.number("cap", 0);
  const auto given = [&](std::string_view tensor) {
    return call.has(tensor) ? ConstTensorRef(call.tensors.at(std::string(tensor)))
                            : ConstTensorRef{};
  };
  options.key_lengths = given("lengths");
  options.query_offsets = given("query_offsets");
  options.key_offsets = given("key_offsets");
  options.slopes = given("slopes");
  options.bias = given("bias");
  const std::string_view of = call.text("of", "q");
  if (of != "q" && of != "k" && of != "v" && of != "sinks") {
    reject(name, fmt::format("of is '{}'; accepted: q, k, v, sinks", of));
  }
  Tensor dsinks;
  if (of == "sinks") {
    if (!call.has("sinks")) reject(name, "of is 'sinks'; accepted with sinks");
    options.sinks = given("sinks");
    dsinks = Tensor(options.sinks.dtype, options.sinks.shape, context.device());
    options.dsinks = dsinks;
  }
  Tensor dq(q.dtype, q.shape, context.device());
  Tensor dk(k.dtype, k.shape, context.device());
  Tensor dv(v.dtype, v.shape, context.device());
  attention_backward(context, q, k, v, call.tensors.at("o"), call.tensors.at("lse"),
                     call.tensors.at("dout"), dq, dk, dv, options, pick);
  call.result = std::move(of == "q" ? dq : of == "k" ? dk : of == "v" ? dv : dsinks);
}

}  // namespace rung
