// SPDX-License-Identifier: Apache-2.0
// gemm / dots
//
// Idea     if C is small, the latency of one element bounds the product: one to eight warps
//          compute each element (a row times a column) with all their loads in flight at once.
// Changes  against few_rows: no sharing and no barriers, so the time is one or two rounds of loads.
//          If several blocks share an element, the last to finish combines their partial sums in a
//          fixed order: one launch.
// Cost     a row of A and a column of B are read per element of C, mostly from L2 or L1.
// Limits   up to some thousand elements; each load of an operand that is not contiguous along k
//          touches 32 sectors.
// Source   the CPU rung dots; NVIDIA, threadFenceReduction sample, for the ticket.
#include "rung/ops/gemm/cuda/shapes/dots.cuh"

#include <algorithm>
#include <cmath>

#include "rung/device/tickets.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {
namespace {

template <class T>
void launch_dots(Context& context, const Finish<T>& finish, const SumsPlan& plan) {
  for_each_grid(finish, plan, [&](const Finish<T>& part, const LaunchShape& shape) {
    const SumsCall<T> call = sums_call(context, part, plan, 1);
    plan.wide ? launch(context, shape, gemm_dots<T, true>, call)
              : launch(context, shape, gemm_dots<T, false>, call);
  });
}

}  // namespace

unsigned* sums_tickets_of(Context& context) { return tickets_of<SumsPlan>(context, sums_tickets); }

void run_dots(Context& context, const Finish<float>& finish, const SumsPlan& plan) {
  launch_dots(context, finish, plan);
}
void run_dots(Context& context, const Finish<double>& finish, const SumsPlan& plan) {
  launch_dots(context, finish, plan);
}
void run_dots(Context& context, const Finish<f16>& finish, const SumsPlan& plan) {
  launch_dots(context, finish, plan);
}
void run_dots(Context& context, const Finish<bf16>& finish, const SumsPlan& plan) {
  launch_dots(context, finish, plan);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr std::int64_t max_elements = std::int64_t{1} << 15;

/// Returns the plan of least time: launch + max(memory; waves of blocks, each several rounds of
/// loads; requests to L1) + reduction [+ ticket].
template <class T>
SumsPlan plan_dots(const Product<T, Accumulator<T>>& p, const Gemm::Args& args,
                   const Context& context) {
  constexpr double latency = 0.9e-6;      // per round of loads
  constexpr double sum_seconds = 0.4e-6;  // reduction across a warp; twice as long across a block
  constexpr double ticket_seconds = 1.6e-6;
  constexpr std::int64_t width = 16 / static_cast<std::int64_t>(sizeof(T));
  const NominalRates rates = nominal_rates(context);
  const double sms = context.info().sms;
  const double clock = rates.operations_per_second / sms / 256;
  const std::int64_t k = p.k();
  const std::int64_t batch = p.c.shape[0];
  const std::int64_t elements = p.m() * p.n();
  const bool along_a = p.a.strides[2] == 1 || k <= 1;
  const bool along_b = p.b.strides[1] == 1 || k <= 1;
  SumsPlan plan;
  plan.lines = true;
  plan.wide = along_a && along_b &&
              begins_wide(p.a.data, p.a.strides[1], p.m(), p.a.strides[0], batch) &&
              begins_wide(p.b.data, p.b.strides[2], p.n(), p.b.strides[0], batch);
  const std::int64_t size = plan.wide ? width : 1;
  const std::int64_t loads = plan.wide ? sums_loads<T, true> : sums_loads<T, false>;
  const double request_cycles = plan.wide ? 8.0 : (along_a ? 2 : 32) + (along_b ? 2 : 32);
  plan.requests = static_cast<int>(request_cycles);
  const double requests = static_cast<double>(elements * batch) *
                          std::ceil(static_cast<double>(k) / static_cast<double>(size * 32)) *
                          request_cycles / sms / clock;
  const double memory = Gemm::cost(args).bytes / rates.bytes_per_second;
  SumsPlan best;
  for (plan.warps = 1; plan.warps <= sums_warps; plan.warps *= 2) {
    const std::int64_t strips = tiles_of(elements, sums_warps / plan.warps);
    const std::int64_t along = plan.warps * warp_size * size;
    for (const std::int64_t splits : {1, 2, 4, 8, 16, 32}) {
      if (splits > 1 &&
          (plan.warps < sums_warps || k < along * splits * 2 || strips * batch > sums_tickets ||
           static_cast<double>(strips * batch * splits) > 8 * sms)) {
        break;
      }
      const std::int64_t depth =
          larger<std::int64_t>(tiles_of(tiles_of(k, size), splits), 1) * size;
      const double rounds =
          std::ceil(static_cast<double>(depth) / static_cast<double>(along * loads));
      const double waves =
          std::ceil(static_cast<double>(strips * batch * splits) / (sms * sums_blocks));
      const double seconds =
          launch_seconds + std::max({memory, waves * rounds * latency, requests}) +
          sum_seconds * (plan.warps == 1 ? 1 : 2) + (splits > 1 ? ticket_seconds : 0);
      if (best.seconds == 0 || seconds < best.seconds) {
        best = plan;
        best.strips = strips;
        best.depth = depth;
        best.splits = static_cast<int>(larger<std::int64_t>(tiles_of(k, depth), 1));
        best.seconds = seconds;
      }
    }
  }
  return best;
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.has_bytes()) return unsupported("8-bit operands");
  if (args.m() > max_elements || args.n() > max_elements || args.m() * args.n() > max_elements) {
    return unsupported("C has more than 2^15 elements");
  }
  if (args.m() == 1 || args.n() == 1) return unsupported("C has one row or column: gemv");
  return args.k() <= std::int64_t{1} << 40 ? supported : unsupported("more than 2^40 steps of k");
}

/// Calls f with the typed product.
template <class F>
auto with_dots(const Gemm::Args& args, F&& f) {
  return visit<float, double, f16, bf16>(args.a.dtype,
                                         [&]<class T>() { return f(finish_of<T>(args)); });
}

Work work(const Gemm::Args& args, const Context& context) {
  return visit<float, double, f16, bf16>(args.a.dtype, [&]<class T>() {
    return sums_work<T>(args, context, plan_dots(finish_of<T>(args).p, args, context));
  });
}

void run(const Gemm::Args& args, Context& context) {
  with_dots(args, [&](const auto& finish) {
    run_dots(context, finish, plan_dots(finish.p, args, context));
  });
}

const Rung<Gemm> self{{.name = "dots",
                       .after = "few_rows",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = 1, .columns = 1},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
