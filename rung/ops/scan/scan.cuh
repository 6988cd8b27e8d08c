// SPDX-License-Identifier: Apache-2.0
// scan_by: scans with user-defined functors, for C++ and CUDA programs.
//
//   y[row, i] = combine(... combine(combine(identity, x[row, 0]), x[row, 1]) ..., x[row, i])
//
//   struct Affine { float a, b; };                                   // v -> a v + b
//   scan_by(context, x, y, Affine{1, 0},
//           [] RUNG_HD (Affine f, Affine g) { return Affine{g.a * f.a, g.a * f.b + g.b}; });
//
// combine(earlier, later) is associative and need not commute: elements keep their order. identity
// is neutral on either side; an exclusive scan begins with it and leaves out x[row, i]. The nesting
// of combine depends on the shape only, so that results are reproducible bit for bit, for any
// number of threads or blocks.
//
// x and y are rows x columns with any strides; y may be x itself, otherwise they must be disjoint.
// Elements are trivially copyable, of 1, 2 or a multiple of 4 bytes. CPU contexts work with any
// compiler; cuda contexts require that nvcc compiles the caller (with __host__ __device__ lambdas),
// simt contexts that the caller is compiled for the simulated GPU.
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
#include "rung/ops/scan/cuda/080_decoupled_look_back.cuh"
#endif

namespace rung {
namespace scan_by_detail {

constexpr std::int64_t cpu_chunk = 4096;  // elements that one thread combines in a row

/// Chunked scan in three steps: totals, a scan of the totals, scans of the chunks. A single thread
/// scans in one step.
template <class T, class Combine>
class OnCpu {
 public:
  OnCpu(const View<const T, 2>& x, const View<T, 2>& y, const T& identity, const Combine& combine,
        bool exclusive)
      : x_(x), y_(y), identity_(identity), combine_(combine), exclusive_(exclusive) {}

  void run(Context& context) const {
    const std::int64_t items = x_.shape[0] * chunks();
    auto* totals = static_cast<T*>(context.workspace(static_cast<std::size_t>(items) * sizeof(T)));
    const int threads =
        static_cast<int>(smaller<std::int64_t>(context.threads(), larger<std::int64_t>(items, 1)));
    const auto ranks = chunks() > 1 ? cpu::Ranks::concurrent : cpu::Ranks::independent;
    cpu::run_ranks(ranks, threads, [&](const cpu::Team& team) {
      const cpu::Range mine = team.share(items);
      if (chunks() > 1) {
        for (std::int64_t item = mine.begin; item < mine.end; ++item) totals[item] = total(item);
        team.wait();
        if (team.rank() == 0) add_up(totals);
        team.wait();
      }
      for (std::int64_t item = mine.begin; item < mine.end; ++item) {
        scan(item, chunks() > 1 ? totals[item] : identity_);
      }
    });
  }

 private:
  [[nodiscard]] std::int64_t chunks() const { return ceil_div(x_.shape[1], cpu_chunk); }
  [[nodiscard]] cpu::Range columns(std::int64_t item) const {
    const std::int64_t begin = item % chunks() * cpu_chunk;
    return {begin, smaller(begin + cpu_chunk, x_.shape[1])};
  }
  [[nodiscard]] T total(std::int64_t item) const {
    const std::int64_t row = item / chunks();
    const cpu::Range range = columns(item);
    T sum = identity_;
    for (std::int64_t i = range.begin; i < range.end; ++i) sum = combine_(sum, x_(row, i));
    return sum;
  }
  /// Replaces the totals by their exclusive scan: the prefix of each chunk.
  void add_up(T* totals) const {
    for (std::int64_t row = 0; row < x_.shape[0]; ++row) {
      T carry = identity_;
      for (std::int64_t chunk = 0; chunk < chunks(); ++chunk) {
        T& total = totals[row * chunks() + chunk];
        const T after = combine_(carry, total);
        total = carry;
        carry = after;
      }
    }
  }
  void scan(std::int64_t item, T running) const {
    const std::int64_t row = item / chunks();
    const cpu::Range range = columns(item);
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const T after = combine_(running, x_(row, i));
      y_(row, i) = exclusive_ ? running : after;
      running = after;
    }
  }

  const View<const T, 2>& x_;
  const View<T, 2>& y_;
  const T& identity_;
  const Combine& combine_;
  bool exclusive_;
};

#if defined(__CUDACC__) || defined(RUNG_SIMT)
template <class T, class Combine>
void on_device(Context& context, const View<const T, 2>& x, const View<T, 2>& y, const T& identity,
               const Combine& combine, bool exclusive) {
  scan_cuda::Lines<T> lines;
  lines.x = x.data;
  lines.y = y.data;
  lines.n = x.shape[1];
  lines.x_stride = x.strides[1];
  lines.y_stride = y.strides[1];
  lines.lines = collapse<2>(Extents{x.shape[0]}, {Extents{x.strides[0]}, Extents{y.strides[0]}});
  const scan_cuda::Plain<T, T, Combine> policy{combine, identity};
  scan_cuda::launch_look_back(context, policy, lines, exclusive);
}
#endif

}  // namespace scan_by_detail

template <class T, class Combine>
void scan_by(Context& context, const View<const std::type_identity_t<T>, 2>& x, const View<T, 2>& y,
             const std::type_identity_t<T>& identity, const Combine& combine,
             bool exclusive = false) {
  static_assert(std::is_trivially_copyable_v<T>, "elements travel as bits");
  static_assert(sizeof(T) <= 2 || sizeof(T) % 4 == 0, "pad the type to a multiple of four bytes");
  for (int axis = 0; axis < 2; ++axis) {
    if (x.shape[axis] < 0 || x.shape[axis] != y.shape[axis]) {
      throw Error(ErrorCode::invalid_argument,
                  "scan_by: x is " + std::to_string(x.shape[0]) + "x" + std::to_string(x.shape[1]) +
                      ", y " + std::to_string(y.shape[0]) + "x" + std::to_string(y.shape[1]) +
                      "; accepted: one shape");
    }
  }
  if (x.shape[0] == 0 || x.shape[1] == 0) return;
  const detail::ContextUse use(context);
  if (context.backend() == Backend::cpu) {
    scan_by_detail::OnCpu<T, Combine>(x, y, identity, combine, exclusive).run(context);
    return use.finish();
  }
#if defined(__CUDACC__) || defined(RUNG_SIMT)
  if (context.backend() == device_backend) {
    scan_by_detail::on_device(context, x, y, identity, combine, exclusive);
    return use.finish();
  }
#endif
  throw Error(ErrorCode::unsupported,
              std::string("scan_by: the context runs on ") + to_string(context.backend()) +
                  ", for which this file was not compiled; accepted: cpu, or cuda from nvcc");
}

}  // namespace rung
