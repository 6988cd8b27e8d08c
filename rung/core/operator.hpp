// SPDX-License-Identifier: Apache-2.0
// Operators and their rungs: what a rung declares about itself, how it registers, and how a call
// picks one.
//
// An operator is a struct (see ops/gemm/gemm.hpp) with
//   name, Args, validate, cost, reference, tolerance, problems, make, call.
// A rung is one file with one constant:
//   const Rung<Gemm> self{{.name = "tiled", .step = 40, ..., .run = run}};
// which pushes itself onto its operator's list during static initialisation: no allocation, no
// CUDA call, nothing central to edit. Link order is arbitrary, so lists are sorted by step.
#pragma once

#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "rung/core/context.hpp"
#include "rung/core/error.hpp"
#include "rung/core/export.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

// What an operator's struct names but only its .cpp needs whole (any_operator.hpp): every rung
// includes that struct, and nvcc reads each header it brings three times.
class Inputs;
enum class Values : std::uint8_t;
struct ArgumentSpec;
struct Invocation;
struct Oracle;
struct Problem;

/// Whether a rung takes a call; if not, a static string that says why, in words.
struct Support {
  bool ok = true;
  const char* why = "";
  explicit operator bool() const { return ok; }
};
inline constexpr Support supported{};
constexpr Support unsupported(const char* why) { return {false, why}; }

/// What a call costs: bytes to and from memory, and useful operations (a multiply-add is two).
struct Cost {
  double bytes = 0;
  double operations = 0;
};

/// |result - reference| <= absolute + relative * |reference| + magnitude * m, where m is the sum
/// of the absolute values of the terms that make up the element: what rounding errors scale with.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
  double magnitude = 0;
};

/// What the workbench may know of a rung without knowing its operator.
struct RungInfo {
  std::string_view name;
  int step = 0;            // numbers in tens, so that one can be put between
  std::string_view after;  // the rung this one improves on, as told in its header
  Backend backend = Backend::cpu;
  bool peer = false;      // a vendor's library: timed and checked, never picked
  bool teaching = false;  // a step of the ladder that later ones always beat: never picked
  std::string_view file;  // relative to the source tree: rung/ops/gemm/cpu/010_naive.cpp
  /// A peer's version and the kernels it chose ("OpenBLAS 0.3.21, SkylakeX"); may be null.
  std::string (*about)() = nullptr;
  /// A library or driver this rung needs beyond its backend; null when none.
  Support (*present)() = nullptr;
};

template <class Op>
struct RungSpec {
  using Args = typename Op::Args;
  std::string_view name;
  int step = 0;
  std::string_view after = {};
  Backend backend = Backend::cpu;
  bool peer = false;
  bool teaching = false;
  std::string (*about)() = nullptr;
  Support (*present)() = nullptr;
  /// Sees types, strides and alignment. Null: everything valid.
  Support (*supports)(const Args&, const Context&) = nullptr;
  /// What this rung moves and computes, as opposed to Op::cost, which is what must be.
  Cost (*traffic)(const Args&) = nullptr;
  /// Estimated seconds, for the default choice among supporting rungs; null: derived from
  /// traffic. The lowest wins, of equal ones the highest step; only the order matters. Teaching
  /// rungs need none.
  double (*estimate)(const Args&, const Context&) = nullptr;
  void (*run)(const Args&, Context&) = nullptr;
};

/// A path as it is told to people: from the source tree's "rung/" on (nvcc keeps absolute paths).
constexpr std::string_view source_path(std::string_view path) {
  const std::size_t root = path.rfind("/rung/ops/");
  return root == std::string_view::npos ? path : path.substr(root + 1);
}

/// The head of an operator's list of rungs; one exported object an operator, in its .cpp.
template <class Op>
class Rung;
template <class Op>
struct RungList {
  const Rung<Op>* first = nullptr;
};

template <class Op>
class Rung {
 public:
  using Args = typename Op::Args;

  explicit Rung(const RungSpec<Op>& spec,
                std::source_location where = std::source_location::current())
      : info{spec.name,
             spec.step,
             spec.after,
             spec.backend,
             spec.peer,
             spec.teaching,
             source_path(where.file_name()),
             spec.about,
             spec.present},
        spec_(spec) {
    RungList<Op>& list = Op::rungs();
    next = list.first;
    list.first = this;
  }
  Rung(const Rung&) = delete;
  Rung& operator=(const Rung&) = delete;

  [[nodiscard]] Support supports(const Args& args, const Context& context) const {
    if (info.present != nullptr) {
      if (const Support here = info.present(); !here) return here;
    }
    return spec_.supports != nullptr ? spec_.supports(args, context) : supported;
  }
  [[nodiscard]] Cost traffic(const Args& args) const {
    return spec_.traffic != nullptr ? spec_.traffic(args) : Op::cost(args);
  }
  [[nodiscard]] double estimate(const Args& args, const Context& context) const;
  /// Does nothing where there is nothing to write: rungs see a result of at least one element.
  void run(const Args& args, Context& context) const {
    if (!writes_nothing(args)) spec_.run(args, context);
  }
  /// Of a call that is known to write something.
  void run_nonempty(const Args& args, Context& context) const { spec_.run(args, context); }
  static bool writes_nothing(const Args& args) {
    if constexpr (requires { Op::writes_nothing(args); }) return Op::writes_nothing(args);
    return false;
  }

  RungInfo info;
  const Rung* next = nullptr;

 private:
  RungSpec<Op> spec_;
};

/// Which rung a call should use: the best one, or one by name. Vendors' libraries are loaded into
/// the process only with `peers`, which the workbench sets; a program calls them itself.
struct Pick {
  std::string_view rung = {};
  bool peers = false;
};
inline constexpr Pick best{};

/// Nominal rates for comparing rungs of one backend; not a measurement (see `rung machine`).
struct NominalRates {
  double bytes_per_second;
  double operations_per_second;
};
RUNG_API NominalRates nominal_rates(const Context& context);

template <class Op>
double Rung<Op>::estimate(const Args& args, const Context& context) const {
  if (spec_.estimate != nullptr) return spec_.estimate(args, context);
  const Cost cost = traffic(args);
  const NominalRates rates = nominal_rates(context);
  return cost.bytes / rates.bytes_per_second + cost.operations / rates.operations_per_second;
}

namespace detail {
/// A rung, and why it does not take the call; "" where that is not needed.
struct Refusal {
  const RungInfo* rung;
  std::string why;
};
[[noreturn]] RUNG_API void throw_no_rung(std::string_view op, Backend backend,
                                         std::string_view asked, std::vector<Refusal> refusals);

/// Apart from choose(), which then builds no string on the way to an answer.
template <class Op>
[[noreturn]] void throw_no_choice(const typename Op::Args& args, const Context& context,
                                  Pick pick) {
  std::vector<Refusal> refusals;
  for (const Rung<Op>* rung = Op::rungs().first; rung != nullptr; rung = rung->next) {
    const RungInfo& info = rung->info;
    if (info.backend != context.backend()) continue;
    // Whether a peer takes a call shows only once its library is loaded.
    const bool answers =
        (pick.rung.empty() || info.name == pick.rung) && (!info.peer || pick.peers);
    refusals.push_back({&info, answers ? rung->supports(args, context).why : ""});
  }
  throw_no_rung(Op::name, context.backend(), pick.rung, std::move(refusals));
}
}  // namespace detail

/// The rung that `pick` names, or the supporting one with the least estimate, of equal ones the
/// highest step. Throws Error with every candidate's reason when there is none.
template <class Op>
const Rung<Op>& choose(const typename Op::Args& args, const Context& context, Pick pick = best) {
  const Rung<Op>* chosen = nullptr;
  double least = 0;
  for (const Rung<Op>* rung = Op::rungs().first; rung != nullptr; rung = rung->next) {
    const RungInfo& info = rung->info;
    if (info.backend != context.backend()) continue;
    if (pick.rung.empty() ? (info.peer || info.teaching) : info.name != pick.rung) continue;
    if (info.peer && !pick.peers) continue;
    if (!rung->supports(args, context)) continue;
    const double seconds = rung->estimate(args, context);
    if (chosen == nullptr || seconds < least ||
        (seconds == least && info.step > chosen->info.step)) {
      chosen = rung;
      least = seconds;
    }
  }
  if (chosen == nullptr) detail::throw_no_choice<Op>(args, context, pick);
  return *chosen;
}

/// Validates, picks and runs.
template <class Op>
void dispatch(const typename Op::Args& args, Context& context, Pick pick = best) {
  Op::validate(args, context);
  Op::check_aliasing(args);
  choose<Op>(args, context, pick).run(args, context);
}

/// What an operator's public function calls, with what it was given. The context remembers the last
/// call: one of the same layout, options and alignment skips binding, validation and choice, and
/// costs a few comparisons. Op::bind(given...) makes Args; Op::rebase(args, given...) replaces the
/// data pointers in them and says whether one differs; same_layout(a, b), found by argument, says
/// that two things given differ in nothing but data pointers. Aliasing is looked at whenever a
/// pointer has changed.
template <class Op, class... Given>
void call(Context& context, Pick pick, const Given&... given) {
  struct Last {
    std::tuple<Given...> given;
    typename Op::Args args;
    const Rung<Op>* rung = nullptr;
  };
  if (!pick.rung.empty()) return dispatch<Op>(Op::bind(given...), context, pick);
  Last& last = context.memo<Last>();
  const Rung<Op>* rung = last.rung;
  const bool same =
      rung != nullptr &&
      std::apply([&](const Given&... before) { return (same_layout(before, given) && ...); },
                 last.given);
  if (!same) {
    last.rung = nullptr;  // stays so when anything below throws
    last.given = std::tuple<Given...>(given...);
    last.args = Op::bind(given...);
    Op::validate(last.args, context);
    Op::check_aliasing(last.args);
    rung = &choose<Op>(last.args, context);
    if (Rung<Op>::writes_nothing(last.args)) return;
  } else if (Op::rebase(last.args, given...)) {
    last.rung = nullptr;
    Op::check_aliasing(last.args);
  }
  last.rung = rung;
  rung->run_nonempty(last.args, context);
}

}  // namespace rung
