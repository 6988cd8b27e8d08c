// SPDX-License-Identifier: Apache-2.0
// rung work: additions and steps of parallel scans and sums, compared with sequential ones.
#include "rung/bench/work.hpp"

#include <fmt/format.h>

#include <cmath>

#include "rung/workbench/calculator.hpp"

namespace rung::workbench {
namespace {

bool is_power_of_two(double n) { return std::exp2(bench::ceil_log2(n)) == n; }

/// A rung that implements an algorithm of this page; scans use a single block.
struct SteppingRung {
  const char* op;
  const char* rung;
  double least, most;  // elements for which barriers match the formula
};
constexpr SteppingRung kogge_stone_rung{"scan", "kogge_stone", 32, 1024};
constexpr SteppingRung brent_kung_rung{"scan", "brent_kung", 64, 2048};
constexpr SteppingRung tree_rung{"reduce", "shared", 256, 65536};

/// Compares the steps with the barriers on the longest path of a block of the rung. Returns true if
/// the rung is counted.
bool add_barriers(const SteppingRung& rung, double n, Sheet& sheet) {
  if (!is_power_of_two(n) || n < rung.least || n > rung.most) return false;
  const double log = bench::ceil_log2(n);
  if (&rung == &kogge_stone_rung) {
    sheet.result("depth in barriers", "2 x {steps} + 2", 2 * log + 2, Unit::count);
    sheet.remark(
        "In one array a step has two barriers: all have read before one writes, and all have "
        "written before one reads. Two more are before and after the results are stored.");
  } else if (&rung == &brent_kung_rung) {
    sheet.result("depth in barriers", "{steps} + 2", 2 * log + 1, Unit::count);
    sheet.remark("A step has one barrier. Two more are before and after the results are stored.");
  } else {
    constexpr double block_steps = 8;  // of a block of 256 threads
    const double passes = std::ceil(log / block_steps);
    sheet.result("passes of blocks of 256", "log2 n / 8, rounded up", passes, Unit::count);
    sheet.result("depth in barriers", "{passes of blocks of 256} x (8 + 1)",
                 passes * (block_steps + 1), Unit::count);
    sheet.remark(
        "A block sums 256 elements in 8 steps with a barrier each, and one before the first. Where "
        "one block does not suffice, a further pass sums what the blocks leave; threads without an "
        "element add zeros, which the count includes.");
  }
  sheet.counted_by(Counting{
      .op = rung.op,
      .rung = rung.rung,
      .problem = fmt::format("f32 {:.0f}", n),
      .remark = "",
      .figures = {{"additions", counted::additions}, {"depth in barriers", counted::depth}}});
  return true;
}

/// Adds the results of an algorithm, by the formula for powers of two if n is one, else by the
/// general formula.
void add_work(const std::string& algorithm, double n, Sheet& sheet) {
  sheet.let("log", bench::ceil_log2(n), Unit::count,
            is_power_of_two(n) ? "log2 n" : "ceil(log2 n)");
  const auto add = [&](const bench::ParallelWork& work, const char* additions,
                       const char* in_steps) {
    sheet.result("additions", additions, work.additions, Unit::count);
    sheet.result("steps", in_steps, work.steps, Unit::count);
  };
  if (algorithm == "kogge-stone") {
    add(bench::kogge_stone(n),
        is_power_of_two(n) ? "{n} x {log} - ({n} - 1)" : "{n} x {log} - (2^{log} - 1)", "{log}");
    if (add_barriers(kogge_stone_rung, n, sheet)) return;
    sheet.counted_by("rung explain scan/kogge_stone --annotate  # lanes and barriers of each step");
  } else if (algorithm == "brent-kung") {
    const bool exact = is_power_of_two(n) && n > 1;
    add(bench::brent_kung(n),
        exact ? "2 x ({n} - 1) - {log}"
              : "sum over s = 1, 2, 4 ...: floor(n / 2s) + floor((n - s) / 2s)",
        exact ? "2 x {log} - 1" : "strides with an addition, up and down");
    if (add_barriers(brent_kung_rung, n, sheet)) return;
    sheet.counted_by("rung explain scan/brent_kung --annotate  # lanes and barriers of each step");
  } else {
    add(bench::tree_sum(n), "{n} - 1", "{log}");
    if (add_barriers(tree_rung, n, sheet)) return;
    sheet.counted_by("rung explain reduce/sequential_addressing --annotate  # lanes of each step");
  }
}

void compute(const Given& given, Sheet& sheet) {
  const double n = given["n"];
  const std::string& algorithm = given.word("algorithm");
  add_work(algorithm, n, sheet);
  sheet.result("sequential", "{n} - 1", n - 1, Unit::count);
  if (n > 1) {
    const double work = algorithm == "kogge-stone"  ? bench::kogge_stone(n).additions
                        : algorithm == "brent-kung" ? bench::brent_kung(n).additions
                                                    : bench::tree_sum(n).additions;
    sheet.result("work against sequential", "{additions} / {sequential}", work / (n - 1));
    sheet.result("log2 of n", "log2 {n}", std::log2(n));
  }
  if (!given.has("coarsening")) return;
  if (algorithm != "tree") {
    throw Error(ErrorCode::invalid_argument,
                "--coarsening: given with " + algorithm + "; accepted with: tree");
  }
  const double c = given["coarsening"];
  sheet.result("steps, blocks in turn", "{coarsening} x {log}", bench::serialized_steps(n, c),
               Unit::count);
  sheet.result("steps, coarsened", "2 x ({coarsening} - 1) + {log}", bench::coarsened_steps(n, c),
               Unit::count);
}

CommandSpec::Action setup(Parser app) {
  app.purpose(
      "Computes how many additions a parallel scan or sum makes, and in how many steps, against "
      "the N - 1 additions of a loop. Kogge and Stone's scan takes the fewest steps and makes some "
      "log2 N times the additions; Brent and Kung's makes fewer than twice as many in twice the "
      "steps; a tree sums with no addition too many. N need not be a power of two: an algorithm "
      "leaves out elements beyond the end. Where a rung does the same, its steps are held against "
      "the "
      "barriers that the simulated GPU counts one after another. With --coarsening, a sum of C "
      "sections of N elements: "
      "one block after another, against threads that first add 2 C elements each.");
  app.example("rung work kogge-stone --n 16,128,1024", "a line per size");
  app.example("rung work brent-kung --n 2048");
  app.example("rung work tree --n 1024 --coarsening 2,4,8");
  return Calculator(app, "work",
                    {{.name = "algorithm",
                      .help = "which",
                      .kind = InputKind::word,
                      .words = {"kogge-stone", "brent-kung", "tree"}},
                     {.name = "--n", .help = "elements; with --coarsening, per section"},
                     {.name = "--coarsening",
                      .help = "sections that one block sums",
                      .optional = true,
                      .symbol = "C",
                      .accepted = {.most = 1e9}}})
      .action(compute);
}

const Command self{{.name = "work",
                    .order = 84,
                    .summary = "additions and steps of parallel scans and sums",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
