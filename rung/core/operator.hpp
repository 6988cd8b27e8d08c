// SPDX-License-Identifier: Apache-2.0
// Operators and their rungs: what a rung declares, how it registers, and how a call chooses a rung.
//
// An operator is a struct (see ops/gemm/op/gemm.hpp) with
//   name      in messages
//   Call      the call as a program makes it: tensors and options, with a defaulted operator==;
//             CallOf<ConstTensorRef, TensorRef> if it can be compared without copying tensors
//   Args      arguments of a rung: a Call, normalized by bind(), and values that bind() derives
//   operands  the tensors of a Call or Args (operands.hpp), from which core derives checks, the
//             comparison with the last call, and updates of remembered pointers
//   bind      checks and derived values specific to the operator; an Error names accepted values
//   cost, reference, tolerance, check_problems, bench_problems, make, describe, arguments, invoke
// A rung is one file with one constant:
//   const Rung<Gemm> self{{.name = "tiled", .step = 40, ..., .run = run}};
// which adds itself to its operator's list during static initialization: no allocation, no CUDA
// call, no central registry. Link order is arbitrary, so lists are sorted by step. A file in
// shapes/ or types/ is not a step of the ladder and has no `.step`; its `.after` names the rung
// that it specializes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "rung/core/context.hpp"
#include "rung/core/error.hpp"
#include "rung/core/export.hpp"
#include "rung/core/operands.hpp"
#include "rung/core/pick.hpp"
#include "rung/core/rates.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/core/work.hpp"

namespace rung {

// Types that an operator's struct only names; its .cpp includes their definitions
// (any_operator.hpp). Rungs include the struct, and nvcc reads each included header three times.
class Inputs;
enum class Values : std::uint8_t;
struct ArgumentSpec;
struct Invocation;
struct Oracle;
struct Problem;

/// Support of a call by a rung; if it is not supported, `why` is a static string with the reason.
struct Support {
  bool ok = true;
  const char* why = "";
  explicit operator bool() const { return ok; }
};
inline constexpr Support supported{};
constexpr Support unsupported(const char* why) { return {false, why}; }

/// Compulsory cost of a call: bytes moved, and useful operations (a multiply-add is two).
struct Cost {
  double bytes = 0;
  double operations = 0;
  double written = 0;  // part of `bytes`
};

/// Number of times that a rung moves each compulsory byte; zeros: not stated.
struct Passes {
  double loads = 0;
  double stores = 0;
};

/// Extents of the tile of results that a kernel computes at a time, from which the operator derives
/// traffic (gemm: a tile of C). Zeros: not stated.
struct TileExtents {
  std::int64_t rows = 0, columns = 0;
};

/// Error bound |result - reference| <= absolute + relative * |reference| + magnitude * m, where m,
/// the scale of rounding errors, is the sum of the absolute values of the element's terms.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
  double magnitude = 0;
};

/// Kind of a rung: a numbered step of the ladder, or a kernel for a family of shapes
/// (cuda/shapes/NAME.cu) or of types and layouts (cuda/types/NAME.cu).
enum class RungKind : std::uint8_t { step, shape, type };

RUNG_API const char* to_string(RungKind kind);

/// Returns a rung's kind, given by the folder of its source.
constexpr RungKind rung_kind(std::string_view file) {
  const std::string_view folder = file.substr(0, file.rfind('/') + 1);
  if (folder.ends_with("/shapes/")) return RungKind::shape;
  return folder.ends_with("/types/") ? RungKind::type : RungKind::step;
}

/// Description of a rung that does not depend on its operator.
struct RungInfo {
  std::string_view name;
  int step = 0;            // multiples of ten, to leave room between steps; 0: not a step
  std::string_view after;  // the rung that this one improves on, or specializes if not a step
  Backend backend = Backend::cpu;
  bool peer = false;              // a vendor's library: timed and checked, never chosen
  bool teaching = false;          // a step that later steps always beat: never chosen
  bool declares_traffic = false;  // its traffic differs from the operator's cost
  std::string_view file;          // relative to the source tree: rung/ops/gemm/cpu/010_naive.cpp
  /// Returns a peer's version and the kernels it selected ("OpenBLAS 0.3.21, SkylakeX"); may be
  /// null.
  std::string (*about)() = nullptr;
  /// Returns whether a library or driver that the rung needs beyond its backend is present;
  /// null: it needs none.
  Support (*present)() = nullptr;
  RungKind kind = RungKind::step;
};

/// Orders rungs: steps by number, then kernels for shapes, then kernels for types, by name.
inline bool comes_before(const RungInfo& a, const RungInfo& b) {
  return std::tie(a.kind, a.step, a.name) < std::tie(b.kind, b.step, b.name);
}

/// Returns true if `a` is chosen over `b` at equal estimates: if it improves on or specializes `b`,
/// else if it is later in the ladder's order.
inline bool wins_tie(const RungInfo& a, const RungInfo& b) {
  if (a.after == b.name) return true;
  return b.after != a.name && comes_before(b, a);
}

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
  /// Checks types, strides and alignment. Null: every valid call is supported.
  Support (*supports)(const Args&, const Context&) = nullptr;
  /// Traffic of this rung in passes over the compulsory bytes of Op::cost.
  Passes passes = {};
  /// Returns traffic that is not a number of passes.
  Cost (*traffic)(const Args&) = nullptr;
  /// Tile of a rung whose operator derives traffic from it.
  TileExtents tile = {};
  /// Returns the facts from which the time model (work.hpp) predicts the rung's time. Among
  /// supporting rungs the least time is chosen; wins_tie() decides between equal times. Null: the
  /// operator's cost in one launch.
  Work (*work)(const Args&, const Context&) = nullptr;
  void (*run)(const Args&, Context&) = nullptr;
};

/// Returns a path relative to the source tree, from "rung/" on (nvcc keeps absolute paths).
constexpr std::string_view source_path(std::string_view path) {
  const std::size_t root = path.rfind("/rung/ops/");
  return root == std::string_view::npos ? path : path.substr(root + 1);
}

/// Head of an operator's list of rungs; one exported object per operator, in its .cpp.
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
                // std::source_location::current() is missing from some supported standard
                // libraries.
                const char* file = __builtin_FILE())
      : info{spec.name,
             spec.step,
             spec.after,
             spec.backend,
             spec.peer,
             spec.teaching,
             spec.traffic != nullptr || spec.passes.loads > 0 || spec.tile.rows > 0,
             source_path(file),
             spec.about,
             spec.present,
             rung_kind(file)},
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
    if (spec_.traffic != nullptr) return spec_.traffic(args);
    if constexpr (requires { Op::traffic(args, spec_.tile); }) {
      if (spec_.tile.rows > 0) return Op::traffic(args, spec_.tile);
    }
    Cost cost = Op::cost(args);
    if (spec_.passes.loads > 0) {
      const double read = spec_.passes.loads * (cost.bytes - cost.written);
      cost.written *= spec_.passes.stores;
      cost.bytes = read + cost.written;
    }
    return cost;
  }
  /// Returns the kernel's facts for this call, with defaults for bytes and operations. The rung is
  /// not consulted for a call that writes nothing.
  [[nodiscard]] Work work(const Args& args, const Context& context) const {
    const bool has_facts = spec_.work != nullptr && !writes_nothing<Op>(args);
    Work work = has_facts ? spec_.work(args, context) : Work{};
    const Cost cost = Op::cost(args);
    if (work.bytes == 0) work.bytes = cost.bytes;
    if (work.operations == 0) work.operations = cost.operations;
    return work;
  }
  [[nodiscard]] Prediction predict(const Work& work, const Context& context) const {
    return rung::predict(terms_of(work, context),
                         rates_.get(Op::name, info.name, context)(work.path), context.backend());
  }
  /// Returns the predicted seconds of a call.
  [[nodiscard]] double estimate(const Args& args, const Context& context) const {
    return predict(work(args, context), context).seconds;
  }
  /// Returns whether the rung declares facts of its own.
  [[nodiscard]] bool has_facts() const { return spec_.work != nullptr; }
  /// Runs the kernel; the result must have at least one element.
  void run(const Args& args, Context& context) const { spec_.run(args, context); }

  RungInfo info;
  const Rung* next = nullptr;

 private:
  RungSpec<Op> spec_;
  detail::RatesCache rates_;
};

/// Returns the rung that contains `info`.
template <class Op>
const Rung<Op>& rung_of(const RungInfo& info) {
  for (const Rung<Op>* rung = Op::rungs().first; rung != nullptr; rung = rung->next) {
    if (&rung->info == &info) return *rung;
  }
  throw Error(ErrorCode::internal, "no such rung: " + std::string(info.name));
}

/// Nominal throughput for comparing rungs of one backend; not measured (see `rung machine`).
struct NominalRates {
  double bytes_per_second;
  double operations_per_second;
};
RUNG_API NominalRates nominal_rates(const Context& context);

/// Nominal overhead of a launch on a GPU, in a sequence of launches on one stream.
inline constexpr double launch_seconds = 4e-6;

/// Returns the context for which rungs are compared in a call on `context`: on a CPU, unless
/// Choice::fastest is set, a context with a fixed number of threads, so that the choice, and with
/// it the summation order, does not depend on the number of threads.
RUNG_API const Context& comparison_context(const Context& context);

namespace detail {
/// A rung, and the reason why it does not support the call; "" if it was not queried.
struct Refusal {
  const RungInfo* rung;
  std::string why;
};
[[noreturn]] RUNG_API void throw_no_rung(std::string_view op, Backend backend,
                                         std::string_view requested, std::vector<Refusal> refusals);

/// Throws the error of a failed choice. Separate from choose(), which then builds no strings.
template <class Op>
[[noreturn]] void throw_no_choice(const typename Op::Args& args, const Context& context,
                                  Pick pick) {
  std::vector<Refusal> refusals;
  for (const Rung<Op>* rung = Op::rungs().first; rung != nullptr; rung = rung->next) {
    const RungInfo& info = rung->info;
    // A peer's support is known only once its library is loaded.
    const bool answers = info.backend == context.backend() &&
                         (pick.rung.empty() || info.name == pick.rung) &&
                         (!info.peer || pick.peers);
    refusals.push_back({&info, answers ? rung->supports(args, context).why : ""});
  }
  throw_no_rung(Op::name, context.backend(), pick.rung, std::move(refusals));
}
}  // namespace detail

/// Returns the rung that `pick` names, else the supporting rung with the least estimate; wins_tie()
/// decides between equal estimates. If there is none, throws Error with every candidate's reason.
template <class Op>
const Rung<Op>& choose(const typename Op::Args& args, const Context& context, Pick pick = best) {
  const Rung<Op>* chosen = nullptr;
  double least = 0;
  const Context& compared = comparison_context(context);
  for (const Rung<Op>* rung = Op::rungs().first; rung != nullptr; rung = rung->next) {
    const RungInfo& info = rung->info;
    if (info.backend != context.backend()) continue;
    if (pick.rung.empty() ? (info.peer || info.teaching) : info.name != pick.rung) continue;
    if (info.peer && !pick.peers) continue;
    if (!rung->supports(args, compared)) continue;
    const double seconds = rung->estimate(args, compared);
    if (chosen == nullptr || seconds < least ||
        (seconds == least && wins_tie(info, chosen->info))) {
      chosen = rung;
      least = seconds;
    }
  }
  if (chosen == nullptr) detail::throw_no_choice<Op>(args, context, pick);
  return *chosen;
}

namespace detail {
/// Returns the rung of a call that names none: the measured choice if the context tunes, else the
/// estimated one. Defined in observed.hpp, which operators' sources include (any_operator.hpp).
template <class Op>
const Rung<Op>& choose_best(const typename Op::Call& call, const typename Op::Args& args,
                            Context& context);

/// Last call of an operator, kept by the context.
template <class Op, class Options>
struct LastCall {
  typename Op::Call call;
  Options options;  // a copy, if they are compared separately
  typename Op::Args args;
  const Rung<Op>* rung = nullptr;
};

// `make` returns the call, as a Call or in another form (see call()).

template <class Op>
[[gnu::noinline]] void call_named(Context& context, const Pick& pick, const auto& make) {
  const typename Op::Call& call = make.template operator()<typename Op::Call>();
  const typename Op::Args args = bind<Op>(call);
  validate<Op>(call, context);
  const Rung<Op>& rung = choose<Op>(args, context, pick);
  if (!writes_nothing<Op>(call)) rung.run(args, context);
}

/// Binds, chooses and runs. Remembers nothing if that throws or the outputs are empty.
template <class Op, class Options>
[[gnu::noinline]] void call_first(Context& context, LastCall<Op, Options>& last, const auto& make) {
  last.rung = nullptr;
  last.call = make.template operator()<typename Op::Call>();
  last.options = make.template operator()<Options>();
  last.args = bind<Op>(last.call);
  validate<Op>(last.call, context);
  if (writes_nothing<Op>(last.call)) {
    static_cast<void>(choose<Op>(last.args, context));  // throws if no rung supports the call
    return;
  }
  const Rung<Op>& rung = choose_best<Op>(last.call, last.args, context);
  last.rung = &rung;
  rung.run(last.args, context);
}

/// Runs a call that repeats the last one with other pointers; forgets it if its tensors overlap.
template <class Op, class Options>
[[gnu::noinline]] void call_moved(Context& context, LastCall<Op, Options>& last, const auto& make) {
  const Rung<Op>* const rung = std::exchange(last.rung, nullptr);
  const typename Op::Call& call = make.template operator()<typename Op::Call>();
  move_pointers<Op>(call, last.call, last.args);
  rung::require_no_overlap<Op>(call);
  last.rung = rung;
  rung->run(last.args, context);
}
}  // namespace detail

/// Runs a call of an operator's public function: checks, binds, chooses, runs. The context
/// remembers the choice: a call that differs from the last one at most in data pointers (repeats())
/// skips binding and choice, and costs a few comparisons. Overlap is checked whenever a pointer has
/// changed.
template <class Op>
void call(Context& context, const typename Op::Call& given, Pick pick = best) {
  const auto make = [&]<class Call>() -> const auto& { return given; };
  const detail::ContextUse use(context);
  bool moved = false;
  if (!pick.rung.empty()) {
    detail::call_named<Op>(context, pick, make);
  } else if (auto& last = context.memo<detail::LastCall<Op, Nothing>>();
             last.rung == nullptr || !repeats<Op>(given, last.call, last.args, moved)) {
    detail::call_first<Op>(context, last, make);
  } else if (moved) {
    detail::call_moved<Op>(context, last, make);
  } else {
    last.rung->run(last.args, context);
  }
  use.finish();
}

/// Runs a call without copying tensors, which would cost more than the comparison. Op::Call is
/// CallOf<ConstTensorRef, TensorRef>, and `make` returns the call in any such form:
///   call<Softmax>(context, pick, [&]<class Call>() { return Call{.x = x, .y = y}; });
template <class Op>
[[gnu::flatten]] void call(Context& context, const Pick& pick, const auto& make) {
  using Tensors = typename Op::template CallOf<TensorArgument, TensorArgument>;
  using Options = typename Op::template CallOf<Nothing, Nothing>;
  const detail::ContextUse use(context);
  bool moved = false;
  if (!pick.rung.empty()) {
    detail::call_named<Op>(context, pick, make);
  } else if (auto& last = context.memo<detail::LastCall<Op, Options>>();
             last.rung == nullptr || last.options != make.template operator()<Options>() ||
             !same_layouts<Op>(make.template operator()<Tensors>(), last.call, moved)) {
    detail::call_first<Op>(context, last, make);
  } else if (moved) {
    detail::call_moved<Op>(context, last, make);
  } else {
    last.rung->run(last.args, context);
  }
  use.finish();
}

}  // namespace rung
