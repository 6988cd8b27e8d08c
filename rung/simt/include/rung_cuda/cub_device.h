// SPDX-License-Identifier: Apache-2.0
// CUB's algorithms of a whole array: reductions, scans, selections, histograms. The first call,
// without storage, asks how much is needed.
#pragma once

#include <limits>

#include "rung_cuda/cub_types.h"

namespace rung::cuda {

/// The call that only asks.
inline bool asks_for_storage(void* storage, size_t& bytes, size_t needed = 1) {
  if (storage == nullptr) bytes = needed;
  return storage == nullptr;
}
template <class Body>
cudaError_t device_wide(void* storage, size_t& bytes, cudaStream_t stream, Body body) {
  if (asks_for_storage(storage, bytes)) return cudaSuccess;
  return run_in_one_thread(stream, body);
}

}  // namespace rung::cuda

namespace cub {

struct DeviceReduce {
  template <class In, class Out, class Count, class Operation, class T>
  static cudaError_t Reduce(void* storage, size_t& bytes, In in, Out out, Count count,
                            Operation operation, T initial, cudaStream_t stream = nullptr) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      T sum = initial;
      for (Count i = 0; i < count; ++i) sum = operation(sum, in[i]);
      *out = sum;
    });
  }
  template <class In, class Out, class Count>
  static cudaError_t Sum(void* storage, size_t& bytes, In in, Out out, Count count,
                         cudaStream_t stream = nullptr) {
    using T = rung::cuda::ValueOf<Out>;
    return Reduce(storage, bytes, in, out, count, cub::Sum{}, T{}, stream);
  }
  template <class In, class Out, class Count>
  static cudaError_t Max(void* storage, size_t& bytes, In in, Out out, Count count,
                         cudaStream_t stream = nullptr) {
    using T = rung::cuda::ValueOf<In>;
    return Reduce(storage, bytes, in, out, count, cub::Max{}, std::numeric_limits<T>::lowest(),
                  stream);
  }
  template <class In, class Out, class Count>
  static cudaError_t Min(void* storage, size_t& bytes, In in, Out out, Count count,
                         cudaStream_t stream = nullptr) {
    using T = rung::cuda::ValueOf<In>;
    return Reduce(storage, bytes, in, out, count, cub::Min{}, std::numeric_limits<T>::max(),
                  stream);
  }
  template <class In, class Out, class Count>
  static cudaError_t ArgMax(void* storage, size_t& bytes, In in, Out out, Count count,
                            cudaStream_t stream = nullptr) {
    return extreme(storage, bytes, in, out, count, cub::ArgMax{}, stream);
  }
  template <class In, class Out, class Count>
  static cudaError_t ArgMin(void* storage, size_t& bytes, In in, Out out, Count count,
                            cudaStream_t stream = nullptr) {
    return extreme(storage, bytes, in, out, count, cub::ArgMin{}, stream);
  }

 private:
  template <class In, class Out, class Count, class Operation>
  static cudaError_t extreme(void* storage, size_t& bytes, In in, Out out, Count count,
                             Operation operation, cudaStream_t stream) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      KeyValuePair<int, rung::cuda::ValueOf<In>> found{0, in[0]};
      for (Count i = 1; i < count; ++i) {
        found = operation(found, {static_cast<int>(i), in[i]});
      }
      *out = found;
    });
  }
};

struct DeviceScan {
  template <class In, class Out, class Operation, class T, class Count>
  static cudaError_t ExclusiveScan(void* storage, size_t& bytes, In in, Out out,
                                   Operation operation, T initial, Count count,
                                   cudaStream_t stream = nullptr) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      T sum = initial;
      for (Count i = 0; i < count; ++i) {
        const T next = operation(sum, in[i]);  // out may be in
        out[i] = sum;
        sum = next;
      }
    });
  }
  template <class In, class Out, class Operation, class Count>
  static cudaError_t InclusiveScan(void* storage, size_t& bytes, In in, Out out,
                                   Operation operation, Count count,
                                   cudaStream_t stream = nullptr) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      if (count <= 0) return;
      rung::cuda::ValueOf<In> sum = in[0];
      out[0] = sum;
      for (Count i = 1; i < count; ++i) out[i] = sum = operation(sum, in[i]);
    });
  }
  template <class In, class Out, class Count>
  static cudaError_t ExclusiveSum(void* storage, size_t& bytes, In in, Out out, Count count,
                                  cudaStream_t stream = nullptr) {
    using T = rung::cuda::ValueOf<In>;
    return ExclusiveScan(storage, bytes, in, out, Sum{}, T{}, count, stream);
  }
  template <class In, class Out, class Count>
  static cudaError_t InclusiveSum(void* storage, size_t& bytes, In in, Out out, Count count,
                                  cudaStream_t stream = nullptr) {
    return InclusiveScan(storage, bytes, in, out, Sum{}, count, stream);
  }
};

struct DeviceSelect {
  template <class In, class Out, class Found, class Count, class Predicate>
  static cudaError_t If(void* storage, size_t& bytes, In in, Out out, Found found, Count count,
                        Predicate predicate, cudaStream_t stream = nullptr) {
    return select(storage, bytes, in, out, found, count, stream,
                  [=](Count i) { return predicate(in[i]); });
  }
  template <class In, class Flags, class Out, class Found, class Count>
  static cudaError_t Flagged(void* storage, size_t& bytes, In in, Flags flags, Out out, Found found,
                             Count count, cudaStream_t stream = nullptr) {
    return select(storage, bytes, in, out, found, count, stream,
                  [=](Count i) { return static_cast<bool>(flags[i]); });
  }
  template <class In, class Out, class Found, class Count>
  static cudaError_t Unique(void* storage, size_t& bytes, In in, Out out, Found found, Count count,
                            cudaStream_t stream = nullptr) {
    return select(storage, bytes, in, out, found, count, stream,
                  [=](Count i) { return i == 0 || !(in[i] == in[i - 1]); });
  }

 private:
  template <class In, class Out, class Found, class Count, class Predicate>
  static cudaError_t select(void* storage, size_t& bytes, In in, Out out, Found found, Count count,
                            cudaStream_t stream, Predicate predicate) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      Count kept = 0;
      for (Count i = 0; i < count; ++i) {
        if (predicate(i)) out[kept++] = in[i];
      }
      *found = kept;
    });
  }
};

struct DeviceRunLengthEncode {
  template <class In, class Out, class Lengths, class Found, class Count>
  static cudaError_t Encode(void* storage, size_t& bytes, In in, Out out, Lengths lengths,
                            Found found, Count count, cudaStream_t stream = nullptr) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      Count runs = 0;
      for (Count i = 0; i < count; ++i) {
        if (i == 0 || !(in[i] == in[i - 1])) {
          out[runs] = in[i];
          lengths[runs++] = 0;
        }
        lengths[runs - 1] += 1;
      }
      *found = runs;
    });
  }
};

struct DeviceSegmentedReduce {
  template <class In, class Out, class Begin, class End>
  static cudaError_t Sum(void* storage, size_t& bytes, In in, Out out, int segments, Begin begin,
                         End end, cudaStream_t stream = nullptr) {
    using T = rung::cuda::ValueOf<Out>;
    return Reduce(storage, bytes, in, out, segments, begin, end, cub::Sum{}, T{}, stream);
  }
  template <class In, class Out, class Begin, class End, class Operation, class T>
  static cudaError_t Reduce(void* storage, size_t& bytes, In in, Out out, int segments, Begin begin,
                            End end, Operation operation, T initial,
                            cudaStream_t stream = nullptr) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      for (int segment = 0; segment < segments; ++segment) {
        T sum = initial;
        for (auto i = begin[segment]; i < end[segment]; ++i) sum = operation(sum, in[i]);
        out[segment] = sum;
      }
    });
  }
};

struct DeviceHistogram {
  /// levels - 1 bins of one width; values below the lowest and from the highest on are left out.
  template <class In, class Bin, class Level, class Count>
  static cudaError_t HistogramEven(void* storage, size_t& bytes, In in, Bin* histogram, int levels,
                                   Level lowest, Level highest, Count count,
                                   cudaStream_t stream = nullptr) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      const int bins = levels - 1;
      for (int i = 0; i < bins; ++i) histogram[i] = 0;
      for (Count i = 0; i < count; ++i) {
        const Level value = static_cast<Level>(in[i]);
        if (value < lowest || !(value < highest)) continue;
        int bin;
        if constexpr (std::is_integral_v<Level>) {
          const auto distance = static_cast<unsigned long long>(value - lowest);
          bin = static_cast<int>(distance * static_cast<unsigned long long>(bins) /
                                 static_cast<unsigned long long>(highest - lowest));
        } else {
          bin = static_cast<int>((value - lowest) * (bins / (highest - lowest)));
        }
        histogram[bin < bins ? bin : bins - 1] += 1;
      }
    });
  }
};

}  // namespace cub
