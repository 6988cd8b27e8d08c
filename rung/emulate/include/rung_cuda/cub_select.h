// SPDX-License-Identifier: Apache-2.0
// CUB device-wide selection, run-length encoding, segmented operations, and histograms.
#pragma once

#include "rung_cuda/cub_device.h"

namespace cub {

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
  // Selects in place.
  template <class Data, class Found, class Count, class Predicate>
  requires(std::is_integral_v<Count>) static cudaError_t
      If(void* storage, size_t& bytes, Data data, Found found, Count count, Predicate predicate,
         cudaStream_t stream = nullptr) {
    return If(storage, bytes, data, data, found, count, predicate, stream);
  }
  template <class Data, class Flags, class Found, class Count>
  requires(std::is_integral_v<Count>) static cudaError_t
      Flagged(void* storage, size_t& bytes, Data data, Flags flags, Found found, Count count,
              cudaStream_t stream = nullptr) {
    return Flagged(storage, bytes, data, flags, data, found, count, stream);
  }
  /// Selects the first pair of each run of equal keys.
  template <class Keys, class Values, class Keys2, class Values2, class Found, class Count>
  static cudaError_t UniqueByKey(void* storage, size_t& bytes, Keys keys, Values values,
                                 Keys2 keys_out, Values2 values_out, Found found, Count count,
                                 cudaStream_t stream = nullptr) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      Count kept = 0;
      for (Count i = 0; i < count; ++i) {
        if (i > 0 && keys[i] == keys[i - 1]) continue;
        keys_out[kept] = keys[i];
        values_out[kept++] = values[i];
      }
      *found = kept;
    });
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

/// Partition: moves selected items to the front in order, and the rest behind them in reverse
/// order.
struct DevicePartition {
  template <class In, class Out, class Found, class Count, class Predicate>
  static cudaError_t If(void* storage, size_t& bytes, In in, Out out, Found found, Count count,
                        Predicate predicate, cudaStream_t stream = nullptr) {
    return part(storage, bytes, in, out, found, count, stream,
                [=](Count i) { return predicate(in[i]); });
  }
  template <class In, class Flags, class Out, class Found, class Count>
  static cudaError_t Flagged(void* storage, size_t& bytes, In in, Flags flags, Out out, Found found,
                             Count count, cudaStream_t stream = nullptr) {
    return part(storage, bytes, in, out, found, count, stream,
                [=](Count i) { return static_cast<bool>(flags[i]); });
  }

 private:
  template <class In, class Out, class Found, class Count, class Predicate>
  static cudaError_t part(void* storage, size_t& bytes, In in, Out out, Found found, Count count,
                          cudaStream_t stream, Predicate predicate) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      Count kept = 0, left = count;
      for (Count i = 0; i < count; ++i) out[predicate(i) ? kept++ : --left] = in[i];
      *found = kept;
    });
  }
};

struct DeviceRunLengthEncode {
  /// Finds runs of at least two items; returns their offsets and lengths.
  template <class In, class Begins, class Lengths, class Found, class Count>
  static cudaError_t NonTrivialRuns(void* storage, size_t& bytes, In in, Begins begins,
                                    Lengths lengths, Found found, Count count,
                                    cudaStream_t stream = nullptr) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      Count runs = 0;
      for (Count i = 0; i < count;) {
        const Count begin = i++;
        while (i < count && in[i] == in[begin]) ++i;
        if (i - begin < 2) continue;
        begins[runs] = begin;
        lengths[runs++] = i - begin;
      }
      *found = runs;
    });
  }
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
  static cudaError_t Max(void* storage, size_t& bytes, In in, Out out, int segments, Begin begin,
                         End end, cudaStream_t stream = nullptr) {
    using T = rung::cuda::ValueOf<In>;
    return Reduce(storage, bytes, in, out, segments, begin, end, cub::Max{},
                  std::numeric_limits<T>::lowest(), stream);
  }
  template <class In, class Out, class Begin, class End>
  static cudaError_t Min(void* storage, size_t& bytes, In in, Out out, int segments, Begin begin,
                         End end, cudaStream_t stream = nullptr) {
    using T = rung::cuda::ValueOf<In>;
    return Reduce(storage, bytes, in, out, segments, begin, end, cub::Min{},
                  std::numeric_limits<T>::max(), stream);
  }
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
  /// Counts in bin i the values in [edges[i], edges[i + 1]).
  template <class In, class Bin, class Edge, class Count>
  static cudaError_t HistogramRange(void* storage, size_t& bytes, In in, Bin* histogram, int levels,
                                    Edge* edges, Count count, cudaStream_t stream = nullptr) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      for (int i = 0; i + 1 < levels; ++i) histogram[i] = 0;
      for (Count i = 0; i < count; ++i) {
        int bin = -1;
        while (bin + 1 < levels && !(in[i] < edges[bin + 1])) ++bin;
        if (bin >= 0 && bin + 1 < levels) histogram[bin] += 1;
      }
    });
  }
  /// Counts values in levels - 1 bins of equal width. Ignores values outside [lowest, highest).
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
