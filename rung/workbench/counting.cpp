// SPDX-License-Identifier: Apache-2.0
// Runs rungs under the counters, for comparison with the figures of calculators.
#include "rung/workbench/counting.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rung/core/error.hpp"
#include "rung/workbench/explain.hpp"

namespace rung::workbench {
namespace {

using simt::record::Kernel;

constexpr double max_operations = 1e8;  // per problem; the simulated GPU does some 1e8 per second

double ratio(double of, double by) { return by == 0 ? 0 : of / by; }

const RungInfo* find_rung(const AnyOperator& op, const std::string& name) {
  for (const RungInfo* one : op.rungs()) {
    if (one->backend == Backend::simt && one->name == name) return one;
  }
  return nullptr;
}

const AnyOperator* built_operator(const std::string& name) {
  for (const AnyOperator* one : operators()) {
    if (one->name() == name) return one;
  }
  return nullptr;
}

}  // namespace

namespace counted {

double bytes_from_global_memory(const Kernel& kernel) {
  return static_cast<double>(kernel.totals.global_load_bytes);
}
double sector_bytes(const Kernel& kernel) {
  constexpr double sector = 32;
  return sector * static_cast<double>(kernel.totals.global_load_sectors);
}
double bytes_from_shared_memory(const Kernel& kernel) {
  return static_cast<double>(kernel.totals.shared_load_bytes);
}
double shared_bytes_per_global_byte(const Kernel& kernel) { return kernel.reuse(); }
double threads_per_block(const Kernel& kernel) {
  return ratio(static_cast<double>(kernel.threads), static_cast<double>(kernel.blocks));
}
double shared_bytes_per_block(const Kernel& kernel) {
  return static_cast<double>(kernel.shared_bytes);
}
double barriers_per_block(const Kernel& kernel) {  // counted once per warp
  return ratio(static_cast<double>(kernel.totals.barriers), static_cast<double>(kernel.warps));
}
double sectors_per_store(const Kernel& kernel) {
  return ratio(static_cast<double>(kernel.totals.global_store_sectors),
               static_cast<double>(kernel.totals.global_store_requests));
}
double divergent_share(const Kernel& kernel) {
  return ratio(static_cast<double>(kernel.divergent_warps), static_cast<double>(kernel.warps));
}
double additions(const Kernel& kernel) { return static_cast<double>(kernel.arithmetic.additions); }
double depth(const Kernel& kernel) { return depth_of(kernel); }

}  // namespace counted

std::string Counting::command() const {
  return fmt::format("rung explain {}/{} \"{}\"{}", op, rung, problem,
                     remark.empty() ? "" : "  # " + remark);
}

Counted count(const Counting& counting) {
  const AnyOperator* op = built_operator(counting.op);
  if (op == nullptr) return {{}, "this program was built without " + counting.op};
  const RungInfo* rung = find_rung(*op, counting.rung);
  if (rung == nullptr) return {{}, "this program was built without the simulated GPU"};
  const Problem problem = Problem::parse(counting.problem);
  try {
    const Device device{Backend::simt, 0};
    if (op->outline(problem, Context::on(Backend::simt))->cost().operations > max_operations) {
      return {{}, "it would take more than a second"};
    }
    const auto instance = op->make(problem, {}, 1, device);
    const Explained one = explain_rung(*rung, problem, *instance);
    if (!one.counted()) return {{}, one.why_not_run};
    Counted counted;
    counted.values.reserve(counting.figures.size());
    for (const CountedFigure& figure : counting.figures) {
      counted.values.push_back(figure.of(one.total));
    }
    return counted;
  } catch (const Error& error) {  // the operator rejects the shape
    return {{}, error.what()};
  }
}

}  // namespace rung::workbench
