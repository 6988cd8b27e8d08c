// SPDX-License-Identifier: Apache-2.0
// CUB device-wide reductions and scans. A call without temporary storage returns the required size.
#pragma once

#include <limits>

#include "rung_cuda/cub_types.h"

namespace rung::cuda {

/// Returns true if the call only queries the storage size; sets `bytes` to the required size.
inline bool queries_storage(void* storage, size_t& bytes, size_t needed = 1) {
  if (storage == nullptr) bytes = needed;
  return storage == nullptr;
}
template <class Body>
cudaError_t device_wide(void* storage, size_t& bytes, cudaStream_t stream, Body body) {
  if (queries_storage(storage, bytes)) return cudaSuccess;
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
      for (Count i = 0; i < count; ++i) {
        const rung::cuda::ValueOf<In> one = in[i];
        sum = operation(sum, one);
      }
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
  template <class In, class Out, class Count, class Operation, class Change, class T>
  static cudaError_t TransformReduce(void* storage, size_t& bytes, In in, Out out, Count count,
                                     Operation operation, Change change, T initial,
                                     cudaStream_t stream = nullptr) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      T sum = initial;
      for (Count i = 0; i < count; ++i) sum = operation(sum, change(in[i]));
      *out = sum;
    });
  }
  /// Reduces each run of equal keys.
  template <class Keys, class Unique, class In, class Out, class Runs, class Operation, class Count>
  static cudaError_t ReduceByKey(void* storage, size_t& bytes, Keys keys, Unique unique, In in,
                                 Out out, Runs runs, Operation operation, Count count,
                                 cudaStream_t stream = nullptr) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      Count found = 0;
      for (Count i = 0; i < count;) {
        const auto key = keys[i];
        rung::cuda::ValueOf<In> sum = in[i++];
        for (; i < count && keys[i] == key; ++i) sum = operation(sum, in[i]);
        unique[found] = key;
        out[found++] = sum;
      }
      *runs = found;
    });
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
        const T next = operation(sum, in[i]);  // `out` may alias `in`
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
  template <class In, class Out, class Operation, class T, class Count>
  static cudaError_t InclusiveScanInit(void* storage, size_t& bytes, In in, Out out,
                                       Operation operation, T initial, Count count,
                                       cudaStream_t stream = nullptr) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      T sum = initial;
      for (Count i = 0; i < count; ++i) out[i] = sum = operation(sum, in[i]);
    });
  }

  // Scans in place.
  template <class Data, class Count>
  requires(std::is_integral_v<Count>) static cudaError_t
      ExclusiveSum(void* storage, size_t& bytes, Data data, Count count,
                   cudaStream_t stream = nullptr) {
    return ExclusiveSum(storage, bytes, data, data, count, stream);
  }
  template <class Data, class Count>
  requires(std::is_integral_v<Count>) static cudaError_t
      InclusiveSum(void* storage, size_t& bytes, Data data, Count count,
                   cudaStream_t stream = nullptr) {
    return InclusiveSum(storage, bytes, data, data, count, stream);
  }

  // Scans within runs of equal keys.
  template <class Keys, class In, class Out, class Operation, class T, class Count,
            class Equal = Equality>
  static cudaError_t ExclusiveScanByKey(void* storage, size_t& bytes, Keys keys, In in, Out out,
                                        Operation operation, T initial, Count count,
                                        Equal equal = {}, cudaStream_t stream = nullptr) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      T sum = initial;
      for (Count i = 0; i < count; ++i) {
        if (i > 0 && !equal(keys[i - 1], keys[i])) sum = initial;
        const T next = operation(sum, in[i]);
        out[i] = sum;
        sum = next;
      }
    });
  }
  template <class Keys, class In, class Out, class Operation, class Count, class Equal = Equality>
  static cudaError_t InclusiveScanByKey(void* storage, size_t& bytes, Keys keys, In in, Out out,
                                        Operation operation, Count count, Equal equal = {},
                                        cudaStream_t stream = nullptr) {
    return rung::cuda::device_wide(storage, bytes, stream, [=] {
      rung::cuda::ValueOf<In> sum{};
      for (Count i = 0; i < count; ++i) {
        const bool goes_on = i > 0 && equal(keys[i - 1], keys[i]);
        out[i] = sum = goes_on ? operation(sum, in[i]) : in[i];
      }
    });
  }
  template <class Keys, class In, class Out, class Count, class Equal = Equality>
  static cudaError_t ExclusiveSumByKey(void* storage, size_t& bytes, Keys keys, In in, Out out,
                                       Count count, Equal equal = {},
                                       cudaStream_t stream = nullptr) {
    return ExclusiveScanByKey(storage, bytes, keys, in, out, Sum{}, rung::cuda::ValueOf<In>{},
                              count, equal, stream);
  }
  template <class Keys, class In, class Out, class Count, class Equal = Equality>
  static cudaError_t InclusiveSumByKey(void* storage, size_t& bytes, Keys keys, In in, Out out,
                                       Count count, Equal equal = {},
                                       cudaStream_t stream = nullptr) {
    return InclusiveScanByKey(storage, bytes, keys, in, out, Sum{}, count, equal, stream);
  }
};

}  // namespace cub
