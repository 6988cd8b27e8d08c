// SPDX-License-Identifier: Apache-2.0
// Estimates of time, and the error if no rung accepts the arguments.
#include "rung/core/operator.hpp"

#include <algorithm>

#include "rung/core/suggestion.hpp"

namespace rung {

const Context& comparison_context(const Context& context) {
  // With two threads, a single-threaded rung is preferred to a multithreaded one only if it takes
  // less than half of the latter's time on one core. By this rule, calls on one thread lose less
  // than a factor of two; calls on many threads lose only if the multithreaded rung takes more than
  // twice as long on one core.
  constexpr int threads = 2;
  if (context.backend() != Backend::cpu || context.choice() == Choice::fastest ||
      context.threads() == threads) {
    return context;  // NOLINT(bugprone-return-const-ref-from-parameter): used within the call
  }
  // Never destroyed, since destructors of static objects may still call operators.
  static const Context& fixed = *new Context(Context::cpu(threads));
  return fixed;
}

const char* to_string(RungKind kind) {
  switch (kind) {
    case RungKind::shape:
      return "shape";
    case RungKind::type:
      return "type";
    case RungKind::step:
      break;
  }
  return "step";
}

namespace detail {
namespace {

/// Returns the other backends that have a rung of this name, as "cuda and simt"; "" if there are
/// none.
std::string other_backends_of(const std::vector<Refusal>& refusals, std::string_view name,
                              Backend backend) {
  std::string list;
  for (const Backend other : all_backends) {
    const bool has_it = std::any_of(refusals.begin(), refusals.end(), [&](const Refusal& refusal) {
      return refusal.rung->backend == other && refusal.rung->name == name && !refusal.rung->peer;
    });
    if (other == backend || !has_it) continue;
    list += (list.empty() ? "" : " and ") + std::string(to_string(other));
  }
  return list;
}

}  // namespace

void throw_no_rung(std::string_view op, Backend backend, std::string_view requested,
                   std::vector<Refusal> refusals) {
  const std::string elsewhere = other_backends_of(refusals, requested, backend);
  std::erase_if(refusals, [&](const Refusal& refusal) { return refusal.rung->backend != backend; });
  std::sort(refusals.begin(), refusals.end(),
            [](const Refusal& a, const Refusal& b) { return comes_before(*a.rung, *b.rung); });
  const std::string where = std::string(op) + " on " + to_string(backend);
  if (!requested.empty()) {
    const auto named = [&](const Refusal& refusal) { return refusal.rung->name == requested; };
    const auto found = std::find_if(refusals.begin(), refusals.end(), named);
    if (found != refusals.end() && found->why.empty()) {
      throw Error(ErrorCode::unsupported,
                  where + ": '" + std::string(requested) +
                      "' is a vendor's library, which only `rung bench`, `check` and `run` load; "
                      "accepted: a rung of rung's own");
    }
    if (found != refusals.end()) {
      throw Error(ErrorCode::unsupported, where + ": rung '" + std::string(requested) +
                                              "' does not take this call: " + found->why);
    }
    std::vector<std::string_view> known;
    std::string list;
    for (const Refusal& refusal : refusals) {
      if (refusal.rung->peer) continue;
      known.push_back(refusal.rung->name);
      list += (list.empty() ? "" : ", ") + std::string(refusal.rung->name);
    }
    // The name of another backend's rung is not a misspelling.
    throw Error(ErrorCode::invalid_argument,
                where + " has no rung '" + std::string(requested) + "'" +
                    (elsewhere.empty() ? did_you_mean(requested, known)
                                       : ", which is a rung on " + elsewhere) +
                    "; accepted: " + (list.empty() ? "none, it has no rung there" : list));
  }
  std::string reasons;
  for (const Refusal& refusal : refusals) {
    const RungInfo& rung = *refusal.rung;
    reasons += "\n  " + std::string(rung.name) + ": " +
               (rung.peer       ? "a vendor's library is used only by name"
                : rung.teaching ? "a teaching rung is used only by name"
                                : refusal.why);
  }
  throw Error(ErrorCode::unsupported, refusals.empty()
                                          ? where + " has no rung"
                                          : where + ": no rung takes this call:" + reasons);
}

}  // namespace detail
}  // namespace rung
