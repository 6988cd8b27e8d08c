// SPDX-License-Identifier: Apache-2.0
// rung bench --gate: times awkward shapes against plain ones, and chosen rungs against the fastest,
// on one CPU thread.
#include "rung/workbench/gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rung/bench/clock.hpp"
#include "rung/workbench/command.hpp"
#include "rung/workbench/files.hpp"
#include "rung/workbench/output.hpp"
#include "rung/workbench/progress.hpp"
#include "rung/workbench/survey.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

/// Allowed ratios, 1.5 to 4 times those measured on a 2-core Zen 5 vCPU. The comments have the
/// ratios measured before there were specialized kernels.
constexpr AwkwardAndPlain shapes[] = {
    {"elementwise", "f32 60000x3,add,y=row", "f32 180000,add", 3},                 // 44
    {"elementwise", "f32 90000x2,mul,y=column", "f32 180000,mul", 8},              // 63
    {"elementwise", "bf16 36000x5,add,x=column", "bf16 180000,add", 8},            // 34
    {"elementwise", "f32 2000x90,fma,x=column,y=row", "f32 180000,fma", 3},        // 3.7
    {"transpose", "f32 8x9264", "f32 272x272", 2},                                 // 3.0
    {"transpose", "f64 1830x2", "f64 60x61", 2},                                   // 3.6
    {"transpose", "f32 1552x8x32", "f32 630x631", 1.6},                            // 2.3
    {"gemm", "f32 56x4x1019,tb", "f32 56x64x64", 4},                               // 6.9
    {"gemm", "f32 1025x1x3,tb", "f32 1x64x48", 6},                                 // 25
    {"reduce", "f64 20000x4,axes=1,argmin", "f64 283x283,axes=1,argmin", 9},       // 29
    {"reduce", "bf16 10000x8,axes=1", "bf16 283x283,axes=1", 8},                   // 12
    {"scan", "f64 786x33x16,axis=2", "f64 645x643,axis=1", 3},                     // 4.1
    {"norm", "f32 1327x2,gamma,beta", "f32 51x52,gamma,beta", 5},                  // 16
    {"norm", "f32 60000x3,gamma,beta,stats", "f32 424x425,gamma,beta,stats", 12},  // 30
    {"gemm", "bf16 38x10x14071,ta", "f32 38x10x14071,ta", 1.3},                    // 1.5
    {"pool", "f32 1x1024x7x7,k=7,average", "f32 1x16x56x56,k=3,average", 1.5},     // 3.2
    {"reduce", "f32 7x4097,axes=0,mean", "f32 7x4097,axes=1,mean", 4},             // 8.4
    {"gemm", "bf16 7622x127x1,ta", "f32 7622x127x1,ta", 4},                        // 6.1
    {"gemm", "bf16 513x511x3", "f32 513x511x3", 3},                                // 4.7
    {"gemm", "bf16 16x33x836,out=f32,tb", "f32 16x33x836,tb", 2},                  // 2.8
    {"gemm", "f32 1x22x11461", "f32 1x32x11461", 1.5},                             // 2.5
    {"gemm", "f64 1x4097x1023,ta", "f64 1x1023x4097,tb", 2.5},                     // 5
    {"reduce", "f32 1x32769,axes=0,max", "f32 2x16384,axes=0,max", 3},             // 60
    {"reduce", "f64 41952x8,axes=1,max", "f64 328x1024,axes=1,max", 5},            // 6.8
    {"reduce", "f32 3x33x1,axes=0,max", "f32 99,max", 2},                          // 3.1
    {"transpose", "f32 3x7x63x8,order=3120", "f32 103x103", 6},                    // 9.7
    {"transpose", "f32 54x29x1033", "f32 1272x1272", 1.7},                         // 2.7
    {"transpose", "f64 387x3x8", "f64 96x97", 4},                                  // 6.1
    {"scan", "bf16 158000,exclusive,reverse", "bf16 158000,exclusive", 2.6},       // 3.8
    {"scan", "bf16 3000x20,axis=0", "bf16 3000x32,axis=0", 2},                     // 4.0
    {"norm", "bf16 3x1299,gamma,beta", "bf16 3x1299,gamma,beta,f32_weights", 2},   // 8.3
    // Ratios of the next five rows: 1.02, 2.0, 3.1, 14, 1.4.
    {"conv", "f32 2x256x14x14,out=256,k=3,p=1,winograd", "f32 2x256x14x14,out=256,k=3,p=1", 0.8},
    {"conv", "f32 15x64x7x21,k=3,p=1,g=64,nhwc", "f32 15x64x7x21,out=64,k=1,nhwc", 1.2},
    {"conv_backward_data", "f32 15x64x7x21,k=3,p=1,g=64,nhwc", "f32 15x64x7x21,out=64,k=1,nhwc",
     1.2},
    {"conv_backward_filter", "f32 14x64x8x13,k=3,p=1,g=64,nhwc", "f32 14x64x8x13,out=64,k=1,nhwc",
     2},
    {"conv_backward_filter", "f32 2x256x14x14,out=256,k=3,p=1",
     "f32 2x256x14x14,out=320,k=3,p=1,nhwc", 1.2},
};

/// Other processes may use this core: the best of several tries counts.
constexpr int tries = 6;

SurveyRow timed(const AnyOperator& op, const Problem& problem, Context& context) {
  SurveyPlan plan;
  plan.peers = false;
  return survey_problem(op, problem, context, plan, {});
}

GateRow gate_shape(const AwkwardAndPlain& pair, Context& context) {
  const AnyOperator& op = find_operator(pair.op);
  GateRow row{.op = pair.op,
              .problem = pair.awkward,
              .beside = pair.plain,
              .ratio = 1e9,
              .limit = pair.factor,
              .note = ""};
  for (int i = 0; i < tries && row.ratio > row.limit; ++i) {
    const SurveyRow awkward = timed(op, Problem::parse(pair.awkward), context);
    const SurveyRow plain = timed(op, Problem::parse(pair.plain), context);
    if (awkward.failed || plain.failed) {
      row.note = awkward.failed ? awkward.note : plain.note;
      break;
    }
    row.ratio = std::min(row.ratio, awkward.seconds / plain.seconds);
  }
  return row;
}

/// Times a choice. The chosen rung may take up to twice the time of the fastest eligible one, plus
/// a microsecond.
GateRow gate_choice(const AnyOperator& op, const Problem& problem, Context& context) {
  constexpr double slowest = 2;
  constexpr double negligible = 1e-6;
  GateRow row{.op = std::string(op.name()),
              .problem = problem.to_string(),
              .beside = "",
              .ratio = 1e9,
              .limit = slowest,
              .note = ""};
  for (int i = 0; i < tries && row.ratio > row.limit; ++i) {
    const SurveyRow timing = timed(op, problem, context);
    if (timing.failed) {
      row.note = timing.note;
      break;
    }
    const bool is_same =
        timing.seconds * (1 - timing.of_fastest) <= negligible || !is_wrong_choice(timing);
    const double ratio = is_same ? 1 : 1 / timing.of_fastest;
    if (ratio >= row.ratio) continue;
    row.ratio = ratio;
    row.beside = is_same ? timing.chosen : timing.fastest + " instead of " + timing.chosen;
  }
  return row;
}

/// Draws and times problems of the operator for `seconds`.
void gate_choices(const AnyOperator& op, double seconds, Context& context,
                  std::vector<GateRow>& rows) {
  constexpr std::int64_t max_problems = 64;
  const SurveyDraw draw{patterns_of(op), 256 << 10};
  const double end = bench::now() + seconds;
  for (std::int64_t index = 0; index < max_problems; ++index) {
    if (index > 0 && bench::now() > end) break;
    rows.push_back(gate_choice(op, draw_problem(op, draw, 1, index), context));
  }
}

std::vector<GateRow> measure(const std::vector<const AnyOperator*>& ops) {
  constexpr double seconds_per_operator = 3;
  // With fewer than two free cores, two threads would wait for each other.
  Context context = Context::cpu(1);
  std::vector<GateRow> rows;
  Progress progress(static_cast<std::int64_t>(ops.size()));
  for (const AnyOperator* op : ops) {
    progress.step(op->name());
    for (const AwkwardAndPlain& pair : shapes) {
      if (op->name() == pair.op) rows.push_back(gate_shape(pair, context));
    }
    if (!op->survey_patterns().empty()) gate_choices(*op, seconds_per_operator, context, rows);
  }
  return rows;
}

}  // namespace

std::span<const AwkwardAndPlain> awkward_shapes() { return shapes; }

std::string gate_text(const std::vector<GateRow>& rows) {
  Table table({{"op"}, {"problem"}, {"beside"}, {"ratio", true}, {"limit", true}, {"note"}});
  std::vector<GateRow> sorted = rows;
  std::stable_partition(sorted.begin(), sorted.end(),
                        [](const GateRow& row) { return row.good(); });
  for (const GateRow& row : sorted) {
    table.add({row.op, row.problem, row.beside, fmt::format("{:.2f}", row.ratio),
               fmt::format("{:.2f}", row.limit), row.note},
              row.good() ? Tone::plain : Tone::bad);
  }
  const auto failed =
      std::count_if(rows.begin(), rows.end(), [](const GateRow& row) { return !row.good(); });
  return fmt::format("{}\n{}: {} within their limits, {} above\n", table.text(),
                     count_of(rows.size(), "comparison"),
                     static_cast<std::ptrdiff_t>(rows.size()) - failed, failed);
}

std::string gate_json(const std::vector<GateRow>& rows) {
  using nlohmann::ordered_json;
  ordered_json all = ordered_json::array();
  bool good = true;
  for (const GateRow& row : rows) {
    all.push_back({{"op", row.op},
                   {"problem", row.problem},
                   {"beside", row.beside},
                   {"ratio", row.ratio},
                   {"limit", row.limit},
                   {"good", row.good()},
                   {"note", row.note}});
    good = good && row.good();
  }
  return ordered_json{{"good", good}, {"rows", all}}.dump(2) + '\n';
}

int run_gate(const std::string& op, bool json, const std::string& file) {
  const std::vector<const AnyOperator*> ops =
      op.empty() ? operators() : std::vector{&find_operator(op)};
  const std::vector<GateRow> rows = measure(ops);
  if (!file.empty()) write_text_file(file, gate_json(rows));
  fmt::print("{}", json ? gate_json(rows) : gate_text(rows));
  const bool good =
      std::all_of(rows.begin(), rows.end(), [](const GateRow& row) { return row.good(); });
  return good ? exit_good : exit_failed;
}

}  // namespace rung::workbench
