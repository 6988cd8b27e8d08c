// SPDX-License-Identifier: Apache-2.0
// Draws the problems of a survey.
#include <fmt/format.h>

#include "rung/core/error.hpp"
#include "rung/harness/problem_pattern.hpp"
#include "rung/workbench/survey.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {

std::vector<std::string> patterns_of(const AnyOperator& op) {
  const auto own = op.survey_patterns();
  if (own.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} declares no random problems; accepted: an operator that does, or a "
                            "pattern of yours, as in \"f32 1..4096x1..64\"",
                            op.name()));
  }
  return {own.begin(), own.end()};
}

Problem draw_problem(const AnyOperator& op, const SurveyDraw& draw, std::uint64_t seed,
                     std::int64_t index) {
  constexpr int max_draws = 5000;
  // Patterns are used in turn, so that each has an equal share of the problems.
  const auto turn = static_cast<std::size_t>(index) % draw.patterns.size();
  const std::string& pattern = draw.patterns[turn];
  Random random(random_stream(seed, op.name()) + mix_bits(static_cast<std::uint64_t>(index)));
  // Always the CPU: validity of a problem must not depend on the device.
  const Context context = Context::cpu(1);
  std::string refusal;
  for (int i = 0; i < max_draws; ++i) {
    const std::string text = draw_text(pattern, random);
    const Problem problem = Problem::parse(text);
    try {
      const double bytes = op.footprint(problem, context);
      if (bytes <= draw.max_bytes) return problem;
      refusal = fmt::format("{} has {}, more than {}", text, format_bytes(bytes),
                            format_bytes(draw.max_bytes));
    } catch (const Error& error) {
      refusal = error.what();
    }
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("pattern '{}': none of {} problems is a valid one that is small enough; "
                          "the last: {}",
                          pattern, max_draws, refusal));
}

void expect_drawable(const AnyOperator& op, const SurveyDraw& draw, std::uint64_t seed,
                     const Context& context) {
  constexpr std::int64_t tries = 20;
  const auto patterns = static_cast<std::int64_t>(draw.patterns.size());
  for (std::int64_t pattern = 0; pattern < patterns; ++pattern) {
    std::string refusal;
    for (std::int64_t i = 0; i < tries; ++i) {
      const Problem problem = draw_problem(op, draw, seed, pattern + i * patterns);
      try {
        static_cast<void>(op.outline(problem, context)->chosen(context));
        refusal.clear();
        break;
      } catch (const Error& error) {
        refusal = fmt::format("{}: {}", problem.to_string(), error.what());
      }
    }
    if (refusal.empty()) continue;
    throw Error(ErrorCode::unsupported,
                fmt::format("pattern '{}': no rung on {} takes one of {} problems drawn from it; "
                            "the last: {}",
                            draw.patterns[static_cast<std::size_t>(pattern)],
                            to_string(context.backend()), tries, refusal));
  }
}

}  // namespace rung::workbench
