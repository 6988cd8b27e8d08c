// SPDX-License-Identifier: Apache-2.0
// Makes a problem and its reference, runs a rung on it and verifies the results.
#include "rung/workbench/verify.hpp"

#include <fmt/format.h>

#include <exception>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "rung/core/error.hpp"
#include "rung/core/varying_bits.hpp"
#include "rung/cpu/team_hooks.hpp"
#include "rung/workbench/compare.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {

Verifier::Verifier(const AnyOperator& op, Problem problem, Variant variant, std::uint64_t seed,
                   Device device)
    : op_(op), problem_(std::move(problem)), variant_(variant), seed_(seed), device_(device) {}

Instance& Verifier::instance() {
  if (!instance_) instance_ = op_.make(problem_, variant_, seed_, device_);
  return *instance_;
}

Instance& Verifier::host() {
  if (device_.backend == Backend::cpu) return instance();
  if (!host_) host_ = op_.make(problem_, variant_, seed_, Device{});
  return *host_;
}

std::vector<Tensor> Verifier::outputs(Instance& instance) const {
  std::vector<Tensor> tensors;
  const auto& entries = instance.inputs.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].written) tensors.push_back(instance.inputs.host(i));
  }
  return tensors;
}

void Verifier::run_oracle() {
  if (oracle_known_) return;
  Instance& made = host();
  made.inputs.reset();  // the oracle must see in-out tensors as before a run
  const double operations = made.cost().operations;
  for (const Inputs::Entry& entry : made.inputs.entries()) {
    if (!entry.written) continue;
    Oracle::Output output;
    output.rows = rows_to_judge(entry.tensor.shape, operations, seed_);
    output.length = row_length(entry.tensor.shape);
    const std::size_t elements = output.rows.size() * static_cast<std::size_t>(output.length);
    output.value.assign(elements, 0.0);
    output.magnitude.assign(elements, 0.0);
    oracle_.outputs.push_back(std::move(output));
  }
  made.reference(oracle_);
  // Tolerances may depend on the inputs, which are in host memory and not yet overwritten here.
  for (const RungInfo* rung : op_.rungs()) {
    if (rung->backend == device_.backend) tolerances_.emplace(rung, made.tolerance(*rung));
  }
  // Only the reference rows are needed from here on: free the host copy of a large problem.
  host_.reset();
  oracle_known_ = true;
}

/// Returns the tolerance of a rung; for the public call, that of the rung it chooses.
Tolerance Verifier::tolerance(const RungInfo* rung, const Context& context) {
  return tolerances_.at(rung != nullptr ? rung : &instance().chosen(context));
}

bool Verifier::would_pass_zeros(const Tolerance& tolerance) {
  std::size_t output = 0;
  bool all = true;
  for (const Inputs::Entry& entry : instance().inputs.entries()) {
    if (!entry.written) continue;
    all = all && zeros_pass(entry.tensor.dtype, oracle_.outputs[output], tolerance);
    ++output;
  }
  return all && output > 0;
}

/// Returns the number of threads of the second run, varied by problem and seed.
int Verifier::other_threads(int threads) const {
  constexpr int numbers[] = {1, 2, 3, 7, 16};
  std::size_t at = (std::hash<std::string>()(problem_.to_string()) + seed_) % std::size(numbers);
  if (numbers[at] == threads) at = (at + 1) % std::size(numbers);
  return numbers[at];
}

std::string Verifier::run_and_compare(const RungInfo* rung, Context& context, bool twice) {
  Instance& made = instance();
  const Tolerance tolerance = this->tolerance(rung, context);
  // Makes teams as large as the context requests, however few cores there are.
  const cpu::team_hooks::AssumedCores assumed(cpu::team_hooks::enough_cores);
  const auto run = [&](Context& where) {
    if (rung != nullptr) {
      made.run(*rung, where);
    } else {
      made.call(where);
    }
    where.synchronize();
  };
  made.inputs.reset();
  // The poison is the same for every run: copy it once.
  if (before_.empty()) before_ = outputs(made);
  run(context);
  const std::vector<Tensor> after = outputs(made);
  // Check the surroundings of tensors first: an overrun explains wrong numbers, not the reverse.
  if (std::string damage = made.inputs.damage(); !damage.empty()) return damage;

  std::size_t output = 0;
  for (const Inputs::Entry& entry : made.inputs.entries()) {
    if (!entry.written) continue;
    const Tensor& got = after[output];
    if (!entry.read) {
      if (std::string why = unwritten(entry.name, before_[output], got); !why.empty()) return why;
    }
    std::string why = mismatch(entry.name, got, oracle_.outputs[output], tolerance);
    if (!why.empty()) return why;
    ++output;
  }
  if (!twice || (rung != nullptr && (rung->peer || VaryingBits::of(*rung)))) return "";

  made.inputs.reset();
  std::optional<Context> other;
  if (context.backend() == Backend::cpu) other = Context::cpu(other_threads(context.threads()));
  run(other ? *other : context);
  const std::vector<Tensor> again = outputs(made);
  output = 0;
  for (const Inputs::Entry& entry : made.inputs.entries()) {
    if (!entry.written) continue;
    std::string why = difference(entry.name, after[output], again[output]);
    if (!why.empty() && other) {
      return fmt::format("{} with {}, the second time with {}", why,
                         count_of(context.threads(), "thread"), other->threads());
    }
    if (!why.empty()) return why;
    ++output;
  }
  return "";
}

Verdict Verifier::verify(const RungInfo* rung, Context& context, bool twice) {
  std::string failure;
  bool mistrusted = false;
  try {
    instance().validate(context);
    if (rung != nullptr) {
      if (const Support support = instance().supports(*rung, context); !support) {
        return {Verdict::Kind::skipped, support.why};
      }
    } else {
      static_cast<void>(instance().chosen(context));
    }
  } catch (const Error& error) {
    // Before any run: the operator cannot make the problem in this variant, no rung supports it, or
    // memory is insufficient for this layout.
    if (error.code() == ErrorCode::unsupported || error.code() == ErrorCode::out_of_memory) {
      return {Verdict::Kind::skipped, error.what()};
    }
    failure = fmt::format("making the problem threw: {}", error.what());
  }
  try {
    if (failure.empty()) {
      run_oracle();
      failure = run_and_compare(rung, context, twice);
      mistrusted = failure.empty() && would_pass_zeros(tolerance(rung, context));
    }
  } catch (const Error& error) {
    failure = fmt::format("threw Error({}): {}", to_string(error.code()), error.what());
  } catch (const std::exception& error) {
    failure = fmt::format("threw: {}", error.what());
  }
  if (failure.empty()) return {.mistrusted = mistrusted};
  // A failed rung may have damaged inputs or padding: the next one gets fresh memory.
  instance_.reset();
  before_.clear();
  return {Verdict::Kind::failed, failure};
}

}  // namespace rung::workbench
