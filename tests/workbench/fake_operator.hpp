// SPDX-License-Identifier: Apache-2.0
// Operator for these tests only: y = 2 x. Most rungs of its ladder are wrong in one way each, so
// that tests can check that the workbench detects it.
#pragma once

#include <string>
#include <vector>

#include "rung/harness/any_operator.hpp"

namespace rung::test {

struct Fake {
  static constexpr std::string_view name = "fake";
  static constexpr std::string_view summary = "y = 2 x";
  static constexpr std::string_view problem_help = "TYPE N or MxN: f32 4x64";

  struct Call {
    ConstTensorRef x = {};
    TensorRef y = {};
    double times = 1;  // multiplies the number of operations claimed
    bool operator==(const Call&) const = default;
  };
  struct Args : Call {};

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), out(call.y, "y"));
  }
  static RungList<Fake>& rungs();
  static void bind(Args&) {}
  static Cost cost(const Args& args);
  static void reference(const Args& args, Oracle& oracle);
  static Tolerance tolerance(const Args& args, const RungInfo& rung, Values values);
  static std::vector<Problem> check_problems(Backend backend);
  static std::vector<Problem> bench_problems(Backend backend);
  static Call make(const Problem& problem, Inputs& inputs);
  static Problem describe(const Call& call);
  static std::span<const ArgumentSpec> arguments();
  static void invoke(Context& context, Invocation& invocation, Pick pick);
};

/// Result of one run of the program.
struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};
/// Runs `rung WORDS...` inside this process, in which the operator above is registered.
Outcome run_rung(const std::vector<std::string>& words);

/// Expects that no line is wider than the limit for help and tables.
void expect_fits_the_page(const std::string& text);

/// Provides made-up ceilings of the machine during its lifetime, so that they need not be measured.
class KnownMachine {
 public:
  explicit KnownMachine(double operations_per_second = 1e11);
  ~KnownMachine();
  KnownMachine(const KnownMachine&) = delete;
  KnownMachine& operator=(const KnownMachine&) = delete;

  std::string folder;  // empty at first, removed at the end; tests may write there
};

}  // namespace rung::test
