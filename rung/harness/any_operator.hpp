// SPDX-License-Identifier: Apache-2.0
// Type-erased operators, which the workbench lists, checks, times and runs. An object of
// Operator<Op> in the operator's .cpp registers the operator.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "rung/core/observed.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/require.hpp"
#include "rung/harness/inputs.hpp"
#include "rung/harness/problem.hpp"

namespace rung {

/// One argument of an operator on the command line (`rung run`).
struct ArgumentSpec {
  enum class Kind { tensor, number, flag, text };
  std::string_view name;  // of a positional tensor ("a") or an option ("alpha" for --alpha)
  Kind kind = Kind::tensor;
  bool positional = false;
  std::string_view help;
  std::string_view choices = {};  // accepted values of a text: "none|relu|gelu"
};

/// Parsed arguments of one `rung run`; the operator fills `result`.
struct RUNG_API Invocation {
  std::map<std::string, Tensor, std::less<>> tensors;
  std::map<std::string, double, std::less<>> numbers;
  std::map<std::string, std::string, std::less<>> texts;  // a given flag is ""
  Tensor result;

  [[nodiscard]] bool has(std::string_view name) const {
    return tensors.contains(name) || numbers.contains(name) || texts.contains(name);
  }
  [[nodiscard]] double number(std::string_view name, double otherwise) const {
    const auto found = numbers.find(name);
    return found == numbers.end() ? otherwise : found->second;
  }
  /// Returns an option that is a whole number, `otherwise` if absent. Throws
  /// Error(invalid_argument) if it is not whole or not within `accepted`.
  [[nodiscard]] std::int64_t integer(std::string_view op, std::string_view name,
                                     std::int64_t otherwise, Problem::Whole accepted) const;
  [[nodiscard]] std::string_view text(std::string_view name, std::string_view otherwise) const {
    const auto found = texts.find(name);
    return found == texts.end() ? otherwise : std::string_view(found->second);
  }
};

/// A problem with its tensors on a device.
class RUNG_API Instance {
 public:
  explicit Instance(Inputs made) : inputs(std::move(made)) {}
  virtual ~Instance() = default;
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  /// Throws the errors of the public function: shapes, types, devices, aliasing.
  virtual void validate(const Context& context) const = 0;
  [[nodiscard]] virtual Support supports(const RungInfo& rung, const Context& context) const = 0;
  /// Runs a rung, also peers and teaching rungs; supports() must have returned true.
  virtual void run(const RungInfo& rung, Context& context) = 0;
  /// Calls the public function, with validation and kernel choice.
  virtual void call(Context& context) = 0;
  [[nodiscard]] virtual const RungInfo& chosen(const Context& context) const = 0;
  /// Returns the estimated seconds by which rungs that support the problem are compared.
  [[nodiscard]] virtual double estimate(const RungInfo& rung, const Context& context) const = 0;
  /// work() returns the work that a rung states for the problem; has_facts() returns whether the
  /// rung's estimate follows from it.
  [[nodiscard]] virtual Work work(const RungInfo& rung, const Context& context) const = 0;
  [[nodiscard]] virtual bool has_facts(const RungInfo& rung) const = 0;
  /// Returns the seconds predicted from the work by the rung's rates, with their parts.
  [[nodiscard]] virtual Prediction predict(const RungInfo& rung, const Context& context) const = 0;
  /// Returns the entry of the tuning file for the problem; no rung if there is none.
  [[nodiscard]] virtual detail::Tuned remembered(const Context& context) const = 0;
  /// Times the candidates of the public function and records the fastest; returns no rung if the
  /// problem cannot be tuned.
  virtual detail::Tuned tune(Context& context) = 0;
  [[nodiscard]] virtual Cost cost() const = 0;
  [[nodiscard]] virtual Cost traffic(const RungInfo& rung) const = 0;
  [[nodiscard]] virtual Tolerance tolerance(const RungInfo& rung) const = 0;
  /// Computes the rows listed in `oracle` from the current tensors, which must be in host memory.
  virtual void reference(Oracle& oracle) const = 0;
  /// Returns the operations of reference() for the fraction `share` of all rows, from 0 to 1: that
  /// fraction of the problem's operations, unless the operator overrides it.
  [[nodiscard]] virtual double reference_operations(double share) const = 0;
  /// Returns the canonical problem, derived from shapes, types and options of the tensors.
  [[nodiscard]] virtual Problem description() const = 0;
  /// Returns true if the other instance has the same operator and equal arguments, apart from data
  /// pointers, devices and strides.
  [[nodiscard]] virtual bool same_call(const Instance& other) const = 0;

  Inputs inputs;
};

class RUNG_API AnyOperator {
 public:
  AnyOperator(const AnyOperator&) = delete;
  AnyOperator& operator=(const AnyOperator&) = delete;

  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Returns the operator's formula, in one line.
  [[nodiscard]] virtual std::string_view summary() const = 0;
  /// Returns the syntax of the operator's problems, with one example per line.
  [[nodiscard]] virtual std::string_view problem_help() const = 0;
  /// Returns all rungs, sorted by backend, then steps, kernels for shapes, kernels for types, peers
  /// (comes_before()).
  [[nodiscard]] virtual std::vector<const RungInfo*> rungs() const = 0;
  [[nodiscard]] virtual std::vector<Problem> check_problems(Backend backend) const = 0;
  [[nodiscard]] virtual std::vector<Problem> bench_problems(Backend backend) const = 0;
  /// Returns patterns of random problems (problem_pattern.hpp); empty if the operator is not
  /// surveyed.
  [[nodiscard]] virtual std::span<const std::string_view> survey_patterns() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Instance> make(const Problem& problem, Variant variant,
                                                       std::uint64_t seed, Device device) const = 0;
  /// Checks a problem without filling its tensors: throws the errors of make() and of the
  /// operator's validate(). Returns the number of elements that the problem writes.
  [[nodiscard]] virtual std::int64_t examine(const Problem& problem,
                                             const Context& context) const = 0;
  /// Returns the bytes of a problem's tensors, without allocating them.
  [[nodiscard]] virtual double footprint(const Problem& problem, const Context& context) const = 0;
  /// Makes the problem with addresses instead of memory. It cannot be run, as its tensors must not
  /// be accessed, but layouts and costs of problems of any size can be queried.
  [[nodiscard]] virtual std::unique_ptr<Instance> outline(const Problem& problem,
                                                          const Context& context) const = 0;
  [[nodiscard]] virtual std::span<const ArgumentSpec> arguments() const = 0;
  virtual void invoke(Context& context, Invocation& invocation, Pick pick) const = 0;

 protected:
  AnyOperator();
  virtual ~AnyOperator() = default;

 private:
  friend RUNG_API std::vector<const AnyOperator*> operators();
  const AnyOperator* next_ = nullptr;
};

/// Returns all operators in this process, sorted by name.
RUNG_API std::vector<const AnyOperator*> operators();
/// Returns the operator of this name. Throws Error(invalid_argument), which lists all names, if
/// there is none.
RUNG_API const AnyOperator& find_operator(std::string_view name);

/// Patterns of random problems (problem_pattern.hpp) for `rung survey`, declared once per operator:
///   constexpr std::string_view survey_patterns[] = {"(f32*2|bf16) 1..65536x1..65536(|,axis=0)"};
///   const Survey<Softmax> survey{survey_patterns};
/// Operators without patterns are not surveyed.
template <class Op>
class Survey {
 public:
  explicit Survey(std::span<const std::string_view> declared) { patterns = declared; }
  static inline constinit std::span<const std::string_view> patterns;
};

template <class Op>
class Operator final : public AnyOperator {
 public:
  std::string_view name() const override { return Op::name; }
  std::string_view summary() const override { return Op::summary; }
  std::string_view problem_help() const override { return Op::problem_help; }
  std::vector<Problem> check_problems(Backend b) const override { return Op::check_problems(b); }
  std::vector<Problem> bench_problems(Backend b) const override { return Op::bench_problems(b); }
  std::span<const std::string_view> survey_patterns() const override {
    return Survey<Op>::patterns;
  }
  std::span<const ArgumentSpec> arguments() const override { return Op::arguments(); }
  void invoke(Context& context, Invocation& invocation, Pick pick) const override {
    Op::invoke(context, invocation, pick);
  }

  std::vector<const RungInfo*> rungs() const override {
    std::vector<const RungInfo*> all;
    for (const Rung<Op>* rung = Op::rungs().first; rung != nullptr; rung = rung->next) {
      all.push_back(&rung->info);
    }
    std::sort(all.begin(), all.end(), [](const RungInfo* a, const RungInfo* b) {
      const auto part = [](const RungInfo& info) { return std::tie(info.backend, info.peer); };
      return part(*a) != part(*b) ? part(*a) < part(*b) : comes_before(*a, *b);
    });
    return all;
  }

  std::unique_ptr<Instance> make(const Problem& problem, Variant variant, std::uint64_t seed,
                                 Device device) const override {
    Inputs inputs(variant, seed, device);
    const typename Op::Call call = Op::make(problem, inputs);
    return std::make_unique<Made>(problem, std::move(inputs), call);
  }

  std::int64_t examine(const Problem& problem, const Context& context) const override {
    std::int64_t written = 0;
    Inputs inputs({}, 1, context.device(), Filling::none);
    static_cast<void>(looked_at(problem, context, inputs));
    for (const Inputs::Entry& entry : inputs.entries()) {
      if (entry.written) written += entry.tensor.size();
    }
    return written;
  }

  double footprint(const Problem& problem, const Context& context) const override {
    double bytes = 0;
    Inputs inputs({}, 1, context.device(), Filling::addresses);
    static_cast<void>(looked_at(problem, context, inputs));
    for (const Inputs::Entry& entry : inputs.entries()) {
      bytes += static_cast<double>(entry.tensor.size()) *
               static_cast<double>(size_of(entry.tensor.dtype));
    }
    return bytes;
  }

  std::unique_ptr<Instance> outline(const Problem& problem, const Context& context) const override {
    Inputs inputs({}, 1, context.device(), Filling::addresses);
    const typename Op::Call call = looked_at(problem, context, inputs);
    return std::make_unique<Made>(problem, std::move(inputs), call);
  }

 private:
  static typename Op::Call looked_at(const Problem& problem, const Context& context,
                                     Inputs& inputs) {
    const typename Op::Call call = Op::make(problem, inputs);
    static_cast<void>(bind<Op>(call));
    validate<Op>(call, context);
    return call;
  }

  /// Returns the arguments without strides, devices and data of tensors. Given tensors get a common
  /// address, since a scalar differs from an absent tensor in its address only.
  static typename Op::Call without_memory(typename Op::Call call) {
    static char some_address;
    const auto strip = [](auto& tensor) {
      tensor.data = is_given(tensor) ? &some_address : nullptr;
      tensor.strides = {};
      tensor.device = {};
    };
    Op::operands(call, [&](const auto&... operand) { (strip(operand.tensor), ...); });
    return call;
  }

  struct Made final : Instance {
    Made(Problem p, Inputs i, const typename Op::Call& c)
        : Instance(std::move(i)), problem(std::move(p)), given(c), args(bind<Op>(c)) {}
    /// Returns the rung of `info`; caches the last result, as a search of the list takes as long as
    /// a tiny problem that is being timed.
    const Rung<Op>& find(const RungInfo& info) const {
      if (found != nullptr && &found->info == &info) return *found;
      for (const Rung<Op>* rung = Op::rungs().first; rung != nullptr; rung = rung->next) {
        if (&rung->info == &info) return *(found = rung);
      }
      throw Error(ErrorCode::internal, "no such rung: " + std::string(info.name));
    }
    void validate(const Context& context) const override { rung::validate<Op>(given, context); }
    Support supports(const RungInfo& rung, const Context& context) const override {
      return find(rung).supports(args, context);
    }
    void run(const RungInfo& rung, Context& context) override {
      if (!writes_nothing<Op>(given)) find(rung).run(args, context);
    }
    void call(Context& context) override { rung::call<Op>(context, given); }
    const RungInfo& chosen(const Context& context) const override {
      if constexpr (detail::Tunable<Op>) {
        const detail::Observed<Op> call(given, args, context);
        if (const RungInfo* known = detail::remembered_rung(call, context)) return *known;
      }
      return choose<Op>(args, context).info;
    }
    double estimate(const RungInfo& rung, const Context& context) const override {
      return find(rung).estimate(args, comparison_context(context));
    }
    Work work(const RungInfo& rung, const Context& context) const override {
      return find(rung).work(args, context);
    }
    bool has_facts(const RungInfo& rung) const override { return find(rung).has_facts(); }
    Prediction predict(const RungInfo& rung, const Context& context) const override {
      const Context& compared = comparison_context(context);
      const Rung<Op>& one = find(rung);
      if (!one.has_facts()) return {.seconds = one.estimate(args, compared)};
      return one.predict(one.work(args, compared), compared);
    }
    detail::Tuned remembered(const Context& context) const override {
      if constexpr (detail::Tunable<Op>) {
        return detail::remembered_choice(detail::Observed<Op>(given, args, context), context);
      }
      return {};
    }
    detail::Tuned tune(Context& context) override {
      if constexpr (detail::Tunable<Op>) {
        detail::Observed<Op> call(given, args, context);
        if (!writes_nothing<Op>(given)) return detail::tune_again(call, context);
      }
      return {};
    }
    Cost cost() const override { return Op::cost(args); }
    Cost traffic(const RungInfo& rung) const override { return find(rung).traffic(args); }
    Tolerance tolerance(const RungInfo& rung) const override {
      return Op::tolerance(args, rung, inputs.variant().values);
    }
    void reference(Oracle& oracle) const override { Op::reference(args, oracle); }
    double reference_operations(double share) const override {
      if constexpr (requires { Op::reference_operations(args, share); }) {
        return Op::reference_operations(args, share);
      } else {
        return Op::cost(args).operations * share;
      }
    }
    Problem description() const override { return Op::describe(given); }
    bool same_call(const Instance& other) const override {
      const auto* const made = dynamic_cast<const Made*>(&other);
      return made != nullptr && without_memory(given) == without_memory(made->given);
    }

    Problem problem;
    typename Op::Call given;
    typename Op::Args args;
    mutable const Rung<Op>* found = nullptr;
  };
};

}  // namespace rung
