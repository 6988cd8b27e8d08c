// SPDX-License-Identifier: Apache-2.0
// gemm_grouped: validates all products of a list, computes those that share launches, then the
// rest.
#include "rung/ops/gemm/op/grouped.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rung/core/observed.hpp"
#include "rung/core/require.hpp"
#include "rung/harness/problem.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so kernels of any file may push themselves.
constinit const GroupedKernel* first_kernel = nullptr;

constexpr std::string_view name = "gemm_grouped";

Gemm::Call call_of(const GemmProblem& problem, const GemmOptions& options) {
  return {.a = problem.a,
          .b = problem.b,
          .c = problem.c,
          .bias = problem.bias,
          .residual = problem.residual,
          .alpha = options.alpha,
          .beta = options.beta,
          .transpose_a = options.transpose_a,
          .transpose_b = options.transpose_b,
          .activation = options.activation,
          .precision = options.precision};
}

/// Calls f for product i and adds the product's index to the message of any Error.
template <class F>
decltype(auto) of_product(std::size_t i, const F& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: product {}: {}", name, i, error.what()));
  }
}

/// Memory range that a product reads or writes.
struct Use {
  ByteRange range;
  std::size_t product;
  bool written;
};

/// Throws if a result overlaps a tensor of another product.
void require_apart(std::span<const GemmProblem> problems) {
  std::vector<Use> uses;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const GemmProblem& one = problems[i];
    const auto add = [&](const ConstTensorRef& tensor, bool written) {
      const ByteRange range = byte_range(tensor);
      if (range.begin != range.end) uses.push_back({range, i, written});
    };
    add(one.c, true);
    add(one.a, false);
    add(one.b, false);
    if (is_given(one.bias)) add(one.bias, false);
    if (is_given(one.residual)) add(one.residual, false);
  }
  std::sort(uses.begin(), uses.end(),
            [](const Use& x, const Use& y) { return x.range.begin < y.range.begin; });
  // Two of the ranges that begin earlier: `one` has the largest end; `other` has the largest end
  // among the products other than the product of `one`.
  struct Furthest {
    Use one{}, other{};
    void add(const Use& use) {
      if (use.product == one.product) {
        if (use.range.end > one.range.end) one = use;
      } else if (use.range.end > one.range.end) {
        other = std::exchange(one, use);
      } else if (use.range.end > other.range.end) {
        other = use;
      }
    }
    [[nodiscard]] const Use& of_others(std::size_t product) const {
      return one.product != product ? one : other;
    }
  };
  Furthest read, written;
  for (const Use& use : uses) {
    const auto check = [&](const Furthest& before) {
      const Use& found = before.of_others(use.product);
      if (found.range.end <= use.range.begin || found.product == use.product) return;
      reject(name, fmt::format("c of product {} overlaps a tensor of product {}",
                               use.written ? use.product : found.product,
                               use.written ? found.product : use.product));
    };
    check(written);
    if (use.written) check(read);
    (use.written ? written : read).add(use);
  }
}

const GroupedKernel* kernel_of(const Context& context) {
  for (const GroupedKernel* kernel = first_kernel; kernel != nullptr; kernel = kernel->next) {
    if (kernel->backend == context.backend()) return kernel;
  }
  return nullptr;
}

/// Returns whether a product is computed in a shared launch.
bool shares(const GroupedKernel* kernel, const Gemm::Args& args, const Context& context,
            Pick pick) {
  if (kernel == nullptr) return false;
  const bool named = pick.rung == kernel->name;
  if (!pick.rung.empty() && !named) return false;
  const Support support = kernel->supports(args, context);
  if (named && !support) {
    throw Error(ErrorCode::unsupported, fmt::format("{}: {}", kernel->name, support.why));
  }
  if (named) return true;
  return support &&
         kernel->seconds(args, context) <= choose<Gemm>(args, context).estimate(args, context);
}

}  // namespace

GroupedKernel::GroupedKernel(std::string_view kernel, Backend where,
                             Support (*takes)(const Gemm::Args&, const Context&),
                             double (*time)(const Gemm::Args&, const Context&),
                             void (*make)(std::span<const Gemm::Args>, Context&))
    : name(kernel), backend(where), supports(takes), seconds(time), run(make), next(first_kernel) {
  first_kernel = this;
}

void gemm_grouped(Context& context, std::span<const GemmProblem> problems,
                  const GemmOptions& options, Pick pick) {
  for (const auto& [option, tensor] :
       {std::pair<const char*, const ConstTensorRef&>{"bias", options.bias},
        {"residual", options.residual},
        {"scale_a", options.scale_a},
        {"scale_b", options.scale_b}}) {
    if (is_given(tensor)) {
      reject(name,
             fmt::format("options have a {}; accepted: bias and residual of each product", option));
    }
  }
  const detail::ContextUse use(context);
  const GroupedKernel* const kernel = kernel_of(context);
  std::vector<Gemm::Args> shared;
  std::vector<std::size_t> alone;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    of_product(i, [&] {
      const Gemm::Call call = call_of(problems[i], options);
      const Gemm::Args args = bind<Gemm>(call);
      validate<Gemm>(call, context);
      if (writes_nothing<Gemm>(call)) return;
      if (shares(kernel, args, context, pick)) {
        shared.push_back(args);
        return;
      }
      choose<Gemm>(args, context, pick);  // throws if no rung supports the product
      alone.push_back(i);
    });
  }
  require_apart(problems);
  // One launch per pair of operand and result types.
  while (!shared.empty()) {
    const auto others =
        std::stable_partition(shared.begin(), shared.end(), [&, first = shared.front()](auto& one) {
          return one.a.dtype == first.a.dtype && one.c.dtype == first.c.dtype;
        });
    kernel->run({shared.begin(), others}, context);
    shared.erase(shared.begin(), others);
  }
  for (const std::size_t i : alone) {
    of_product(i, [&] { call<Gemm>(context, call_of(problems[i], options), pick); });
  }
  use.finish();
}

}  // namespace rung
