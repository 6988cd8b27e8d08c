// SPDX-License-Identifier: Apache-2.0
// reduce_by: reductions with functors of the caller's own, for C++ and CUDA programs.
//
//   y[row] = combine(... combine(combine(identity, map(x[row, 0])), map(x[row, 1])) ...)
//
//   struct Range { float low, high; };
//   reduce_by(context, x, y, Range{INFINITY, -INFINITY},
//             [] RUNG_HD (Range a, Range b) { ... }, [] RUNG_HD (float v) { return Range{v, v}; });
//
// combine(earlier, later) is associative and need not commute: elements keep their order. identity
// is neutral on both sides. How calls are nested follows from the shape alone, so that results
// repeat, bit for bit, from run to run and for any number of threads. No rows: nothing is written;
// empty rows give the identity.
//
// x is rows x columns with any strides, y has an element a row and does not overlap x. The state S,
// identity's type, is trivially copyable, of 1, 2 or a multiple of 4 bytes. Runs on CPU contexts
// from any compiler; on cuda contexts when nvcc compiles the caller (lambdas for it are __host__
// __device__), on simt contexts where the caller is compiled for the simulated GPU.
// Errors: Error(invalid_argument) for shapes that do not fit; Error(unsupported) for a context that
// the including file was not compiled for.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "rung/core/bounds.hpp"
#include "rung/core/context.hpp"
#include "rung/core/error.hpp"
#include "rung/core/integer.hpp"
#include "rung/core/view.hpp"
#include "rung/cpu/team.hpp"

#if defined(__CUDACC__) || defined(RUNG_SIMT)
#include "rung/ops/reduce/cuda/detail/reduce_by.hpp"
#endif

namespace rung {

/// The map of those who want none.
struct Unchanged {
  template <class T>
  RUNG_HD constexpr T operator()(T value) const {
    return value;
  }
};

namespace reduce_by_detail {

constexpr std::int64_t cpu_chunk = 4096;  // elements that one thread folds in a row

template <class T, class S, class Combine, class Map>
void on_cpu(Context& context, const View<const T, 2>& x, const View<S, 1>& y, const S& identity,
            const Combine& combine, const Map& map) {
  const std::int64_t rows = x.shape[0];
  const std::int64_t columns = x.shape[1];
  const std::int64_t chunks = larger<std::int64_t>(ceil_div(columns, cpu_chunk), 1);
  const auto fold = [&](std::int64_t row, std::int64_t chunk) {
    const std::int64_t end = smaller((chunk + 1) * cpu_chunk, columns);
    S state = identity;
    for (std::int64_t i = chunk * cpu_chunk; i < end; ++i) state = combine(state, map(x(row, i)));
    return state;
  };
  const int threads =
      static_cast<int>(smaller<std::int64_t>(context.threads(), ceil_div(rows * chunks, 16)));
  // Few rows: threads share them by chunks, which wait in the workspace to be combined.
  const bool share = threads > 1 && rows < 4 * threads;
  S* states =
      share
          ? static_cast<S*>(context.workspace(static_cast<std::size_t>(rows * chunks) * sizeof(S)))
          : nullptr;
  const auto ranks = share ? cpu::Ranks::concurrent : cpu::Ranks::independent;
  cpu::run_ranks(ranks, threads, [&](const cpu::Team& team) {
    if (share) {
      const cpu::Range tasks = team.share(rows * chunks);
      for (std::int64_t task = tasks.begin; task < tasks.end; ++task) {
        states[task] = fold(task / chunks, task % chunks);
      }
      team.wait();
    }
    const cpu::Range part = team.share(rows);
    for (std::int64_t row = part.begin; row < part.end; ++row) {
      S state = share ? states[row * chunks] : fold(row, 0);
      for (std::int64_t c = 1; c < chunks; ++c) {
        state = combine(state, share ? states[row * chunks + c] : fold(row, c));
      }
      y(row) = state;
    }
  });
}

}  // namespace reduce_by_detail

template <class T, class S, class Combine, class Map = Unchanged>
void reduce_by(Context& context, const View<const T, 2>& x, const View<S, 1>& y,
               const std::type_identity_t<S>& identity, const Combine& combine,
               const Map& map = {}) {
  static_assert(std::is_trivially_copyable_v<S>);
  if (x.shape[0] != y.shape[0]) {
    throw Error(ErrorCode::invalid_argument,
                "reduce_by: y has " + std::to_string(y.shape[0]) +
                    " elements; accepted: " + std::to_string(x.shape[0]) + ", the rows of x");
  }
  const detail::ContextUse use(context);
  if (context.backend() == Backend::cpu) {
    reduce_by_detail::on_cpu(context, x, y, identity, combine, map);
    return use.finish();
  }
#if defined(__CUDACC__) || defined(RUNG_SIMT)
  if (context.backend() == device_backend) {
    reduce_by_detail::on_device(context, x, y, identity, combine, map);
    return use.finish();
  }
#endif
  throw Error(ErrorCode::unsupported,
              std::string("reduce_by: the context is ") + to_string(context.backend()) +
                  ", for which this file was not compiled; accepted: cpu, or cuda from nvcc");
}

}  // namespace rung
