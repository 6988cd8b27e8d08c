// SPDX-License-Identifier: Apache-2.0
// std, oneTBB and Eigen behind the C interface of module.hpp; compiled once per instruction set.
#include "rung/ops/reduce/peers/headers/module.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_arena.h>
#include <tbb/version.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <execution>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <numeric>

namespace rung::peer_reduce {
namespace {

struct Least {
  template <class T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Greatest {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

/// Calls f(identity, operation) for an operation.
template <class T, class F>
void with_operation(Operation operation, F&& f) {
  using Limits = std::numeric_limits<T>;
  switch (operation) {
    case Operation::product:
      return f(T{1}, std::multiplies<T>());
    case Operation::min:
      return f(Limits::infinity(), Least());
    case Operation::max:
      return f(-Limits::infinity(), Greatest());
    default:
      return f(T{0}, std::plus<T>());
  }
}

template <class T>
void finish(const ReducePeerArguments& call, T* y) {
  const std::int64_t results = call.outer * call.inner;
  for (std::int64_t i = 0; i < results; ++i) {
    if (call.operation == Operation::mean) y[i] /= static_cast<T>(call.length);
    if (call.operation == Operation::norm) y[i] = std::sqrt(y[i]);
  }
}

/// Returns the fold of [begin, end) by one thread; the policy unseq allows vectorization.
template <class T, class F>
T serial(const ReducePeerArguments& call, const T* begin, const T* end, T identity, F operation) {
  if (call.operation == Operation::norm) {
    return std::transform_reduce(std::execution::unseq, begin, end, T{0}, std::plus<T>(),
                                 [](T v) { return v * v; });
  }
  return std::reduce(std::execution::unseq, begin, end, identity, operation);
}

/// Folds rows [begin, end) of columns [first, last) into y.
template <class T, class F>
void columns(const ReducePeerArguments& call, const T* x, T* y, std::int64_t first,
             std::int64_t last, T identity, F operation) {
  std::fill(y + first, y + last, identity);
  const bool squares = call.operation == Operation::norm;
  for (std::int64_t r = 0; r < call.length; ++r) {
    const T* row = x + r * call.inner;
    std::transform(std::execution::unseq, row + first, row + last, y + first, y + first,
                   [&](T v, T total) { return operation(total, squares ? v * v : v); });
  }
}

template <class T>
void run_std(const ReducePeerArguments& call) {
  const T* x = static_cast<const T*>(call.x);
  T* y = static_cast<T*>(call.y);
  with_operation<T>(call.operation, [&](T identity, auto operation) {
    for (std::int64_t i = 0; i < call.outer; ++i) {
      const T* row = x + i * call.length * call.inner;
      if (call.inner > 1) {
        columns(call, row, y + i * call.inner, 0, call.inner, identity, operation);
      } else if (call.threads == 1) {
        y[i] = serial(call, row, row + call.length, identity, operation);
      } else if (call.operation == Operation::norm) {
        y[i] = std::transform_reduce(std::execution::par_unseq, row, row + call.length, T{0},
                                     std::plus<T>(), [](T v) { return v * v; });
      } else {
        y[i] = std::reduce(std::execution::par_unseq, row, row + call.length, identity, operation);
      }
    }
  });
  finish(call, y);
}

template <class T>
void run_tbb(const ReducePeerArguments& call) {
  const T* x = static_cast<const T*>(call.x);
  T* y = static_cast<T*>(call.y);
  using Range = tbb::blocked_range<std::int64_t>;
  with_operation<T>(call.operation, [&](T identity, auto operation) {
    for (std::int64_t i = 0; i < (call.inner > 1 ? call.outer : 0); ++i) {
      tbb::parallel_for(Range(0, call.inner, 1024), [&](const Range& range) {
        columns(call, x + i * call.length * call.inner, y + i * call.inner, range.begin(),
                range.end(), identity, operation);
      });
    }
    if (call.inner > 1) return;
    const bool by_row = call.outer >= 4 * call.threads;
    if (by_row) {
      tbb::parallel_for(Range(0, call.outer), [&](const Range& range) {
        for (std::int64_t i = range.begin(); i < range.end(); ++i) {
          const T* row = x + i * call.length;
          y[i] = serial(call, row, row + call.length, identity, operation);
        }
      });
      return;
    }
    for (std::int64_t i = 0; i < call.outer; ++i) {
      const T* row = x + i * call.length;
      y[i] = tbb::parallel_reduce(
          Range(0, call.length, 8192), identity,
          [&](const Range& range, T total) {
            return operation(
                total, serial(call, row + range.begin(), row + range.end(), identity, operation));
          },
          operation);
    }
  });
  finish(call, y);
}

template <class T>
void run_eigen(const ReducePeerArguments& call) {
  using Matrix = Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Vector = Eigen::Array<T, Eigen::Dynamic, 1>;
  T* y = static_cast<T*>(call.y);
  const auto reduce = [&](const auto& x, auto&& result) {
    switch (call.operation) {
      case Operation::sum:
        return result(x.sum());
      case Operation::product:
        return result(x.prod());
      case Operation::min:
        return result(x.minCoeff());
      case Operation::max:
        return result(x.maxCoeff());
      case Operation::mean:
        return result(x.mean());
      case Operation::norm:
        return result(x.square().sum());
    }
  };
  for (std::int64_t i = 0; i < call.outer; ++i) {
    const T* from = static_cast<const T*>(call.x) + i * call.length * call.inner;
    if (call.inner > 1) {
      const Eigen::Map<const Matrix> x(from, call.length, call.inner);
      Eigen::Map<Eigen::Array<T, 1, Eigen::Dynamic>> out(y + i * call.inner, call.inner);
      switch (call.operation) {
        case Operation::sum:
          out = x.colwise().sum();
          break;
        case Operation::product:
          out = x.colwise().prod();
          break;
        case Operation::min:
          out = x.colwise().minCoeff();
          break;
        case Operation::max:
          out = x.colwise().maxCoeff();
          break;
        case Operation::mean:
          out = x.colwise().mean();
          break;
        case Operation::norm:
          out = x.square().colwise().sum().sqrt();
          break;
      }
    } else {
      const Eigen::Map<const Vector> x(from, call.length);
      reduce(x,
             [&](T value) { y[i] = call.operation == Operation::norm ? std::sqrt(value) : value; });
    }
  }
}

template <class T>
void run(const ReducePeerArguments& call) {
  if (call.library == Library::eigen) return run_eigen<T>(call);
  // An arena of call.threads threads: TBB would otherwise use all cores.
  static std::unique_ptr<tbb::task_arena> arena;
  if (call.library == Library::std && call.threads == 1) return run_std<T>(call);
  if (!arena || arena->max_concurrency() != call.threads) {
    arena = std::make_unique<tbb::task_arena>(call.threads);
  }
  arena->execute([&] { call.library == Library::std ? run_std<T>(call) : run_tbb<T>(call); });
}

}  // namespace
}  // namespace rung::peer_reduce

#define RUNG_MODULE_API extern "C" __attribute__((visibility("default")))
RUNG_MODULE_API bool rung_reduce_peer(const rung::peer_reduce::ReducePeerArguments* call) {
  try {
    call->is_f64 ? rung::peer_reduce::run<double>(*call) : rung::peer_reduce::run<float>(*call);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}
RUNG_MODULE_API int rung_reduce_peer_version(rung::peer_reduce::Library library) {
  using rung::peer_reduce::Library;
  if (library == Library::eigen) {
    return EIGEN_WORLD_VERSION * 10000 + EIGEN_MAJOR_VERSION * 100 + EIGEN_MINOR_VERSION;
  }
  if (library == Library::tbb) return TBB_VERSION_MAJOR * 10000 + TBB_VERSION_MINOR * 100;
  return _GLIBCXX_RELEASE * 10000;
}
