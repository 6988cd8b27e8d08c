// SPDX-License-Identifier: Apache-2.0
// Time model: terms of a kernel's work, and the time predicted from them and rates.
#include "rung/core/work.hpp"

#include <algorithm>
#include <cmath>

#include "rung/core/operator.hpp"

namespace rung {

std::string_view to_string(RateTerm term) {
  constexpr std::string_view names[] = {"start",      "launch", "memory", "middle", "near",
                                        "arithmetic", "wave",   "round",  "block",  "step"};
  return names[static_cast<std::size_t>(term)];
}

namespace {

/// Capacity of a core's private caches, and of the cache that cores share, on common CPUs. They
/// only select the level that holds the operands, so a factor of two matters little.
constexpr double near_bytes = 1 << 20;
constexpr double middle_bytes = 16 << 20;

constexpr std::size_t at(RateTerm term) { return static_cast<std::size_t>(term); }

}  // namespace

WorkTerms terms_of(const Work& work, const Context& context) {
  NominalRates nominal = nominal_rates(context);
  if (context.info().bytes_per_second > 0) {
    nominal.bytes_per_second = context.info().bytes_per_second;
  }
  const bool cpu = context.backend() == Backend::cpu;
  // Nominal CPU rates are for all threads of the context.
  const double threads = work.threads;
  const double share = cpu ? context.threads() / threads : 1;
  const double units = cpu ? threads : context.info().sms;
  WorkTerms terms{};
  terms[at(RateTerm::start)] = 1;
  terms[at(RateTerm::launch)] = cpu ? threads - 1 : double{work.launches};
  const RateTerm level = !cpu                                 ? RateTerm::memory
                         : work.bytes <= near_bytes * threads ? RateTerm::near
                         : work.bytes <= middle_bytes         ? RateTerm::middle
                                                              : RateTerm::memory;
  terms[at(level)] = work.bytes / nominal.bytes_per_second * share;
  terms[at(RateTerm::arithmetic)] = work.operations / nominal.operations_per_second * share;
  const double resident = std::max(1.0, double{work.resident});
  const double waves = std::max(1.0, work.blocks / (resident * units));
  terms[at(RateTerm::wave)] = cpu ? 0 : waves;
  terms[at(RateTerm::round)] = cpu ? 0 : waves * work.rounds;
  // A single block takes its full time even if other SMs are idle.
  const double each = work.blocks <= 0 ? 0
                      : cpu            ? work.blocks / units
                                       : std::max(1.0, work.blocks / units);
  terms[at(RateTerm::block)] = each;
  terms[at(RateTerm::step)] = each * work.steps;
  return terms;
}

Prediction predict(const WorkTerms& terms, const Rates& rates, Backend backend) {
  const auto part = [&](RateTerm term) { return terms[at(term)] * rates.of[at(term)]; };
  Prediction one;
  one.starting = part(RateTerm::start) + part(RateTerm::launch);
  one.memory = part(RateTerm::memory) + part(RateTerm::middle) + part(RateTerm::near);
  one.arithmetic = part(RateTerm::arithmetic);
  one.waiting = part(RateTerm::wave) + part(RateTerm::round);
  one.issue = part(RateTerm::block) + part(RateTerm::step);
  double busy;
  if (backend == Backend::cpu) {
    // A core executes the four parts mostly one after another.
    busy = one.memory + one.arithmetic + one.waiting + one.issue;
  } else {
    // An SM overlaps the four parts, so the longest dominates: a smooth maximum, their 4-norm.
    const auto fourth = [](double seconds) { return seconds * seconds * (seconds * seconds); };
    busy = std::sqrt(std::sqrt(fourth(one.memory) + fourth(one.arithmetic) + fourth(one.waiting) +
                               fourth(one.issue)));
  }
  one.seconds = one.starting + busy;
  return one;
}

const char* Prediction::limiter() const {
  const double most = std::max({starting, memory, arithmetic, waiting, issue});
  return most == memory       ? "memory"
         : most == arithmetic ? "arithmetic"
         : most == waiting    ? "latency"
         : most == issue      ? "instructions"
                              : "launch";
}

}  // namespace rung
