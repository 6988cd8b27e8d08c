// SPDX-License-Identifier: Apache-2.0
// Thrust's algorithms over ranges: searches, comparisons, stencils, keys, sets, partitions.
#include <thrust/copy.h>
#include <thrust/device_free.h>
#include <thrust/device_malloc.h>
#include <thrust/device_vector.h>
#include <thrust/equal.h>
#include <thrust/find.h>
#include <thrust/functional.h>
#include <thrust/gather.h>
#include <thrust/host_vector.h>
#include <thrust/logical.h>
#include <thrust/merge.h>
#include <thrust/mismatch.h>
#include <thrust/partition.h>
#include <thrust/replace.h>
#include <thrust/reverse.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include <thrust/sequence.h>
#include <thrust/set_operations.h>
#include <thrust/swap.h>
#include <thrust/system_error.h>
#include <thrust/tabulate.h>
#include <thrust/transform.h>
#include <thrust/transform_scan.h>
#include <thrust/unique.h>

#include "check.cuh"

struct Even {
  __host__ __device__ bool operator()(int v) const { return v % 2 == 0; }
};
struct Above {
  int least;
  __host__ __device__ bool operator()(int v) const { return v > least; }
};

typedef thrust::device_vector<int> Numbers;

bool is(const Numbers& numbers, const thrust::host_vector<int>& wanted, long count) {
  const thrust::host_vector<int> have = numbers;
  if (count != static_cast<long>(wanted.size())) return false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (have[i] != wanted[i]) return false;
  }
  return true;
}
bool is(const Numbers& numbers, const thrust::host_vector<int>& wanted) {
  return is(numbers, wanted, static_cast<long>(numbers.size()));
}

void searches() {
  Numbers a{1, 5, 2, 9, 4}, b{1, 5, 3, 9, 4};
  CHECK(thrust::find(a.begin(), a.end(), 9) - a.begin() == 3);
  CHECK(thrust::find(a.begin(), a.end(), 7) == a.end());
  CHECK(thrust::find_if(a.begin(), a.end(), Even()) - a.begin() == 2);
  CHECK(thrust::find_if_not(a.begin(), a.end(), Above{1}) == a.begin());
  CHECK(thrust::all_of(a.begin(), a.end(), Above{0}) &&
        !thrust::all_of(a.begin(), a.end(), Even()));
  CHECK(thrust::any_of(a.begin(), a.end(), Even()) &&
        !thrust::any_of(a.begin(), a.end(), Above{9}));
  CHECK(thrust::none_of(a.begin(), a.end(), Above{9}));
  CHECK(thrust::mismatch(a.begin(), a.end(), b.begin()).second - b.begin() == 2);
  CHECK(!thrust::equal(a.begin(), a.end(), b.begin()));
  CHECK(thrust::equal(a.begin(), a.begin() + 2, b.begin()));
  const auto extremes = thrust::minmax_element(a.begin(), a.end());
  CHECK(*extremes.first == 1 && *extremes.second == 9);
}

void by_stencil() {
  Numbers map{2, 0, 1, 3}, stencil{0, 1, 1, 0}, to(4, -1), from{10, 20, 30, 40};
  thrust::scatter(from.begin(), from.end(), map.begin(), to.begin());
  CHECK(is(to, {20, 30, 10, 40}));
  thrust::fill(to.begin(), to.end(), -1);
  thrust::scatter_if(from.begin(), from.end(), map.begin(), stencil.begin(), to.begin());
  CHECK(is(to, {20, 30, -1, -1}));
  thrust::fill(to.begin(), to.end(), -1);
  thrust::gather_if(map.begin(), map.end(), stencil.begin(), from.begin(), to.begin());
  CHECK(is(to, {-1, 10, 20, -1}));
  thrust::replace_if(to.begin(), to.end(), Above{15}, 0);
  thrust::replace(to.begin(), to.end(), -1, 7);
  CHECK(is(to, {7, 10, 0, 7}));
  thrust::transform_if(from.begin(), from.end(), stencil.begin(), to.begin(), thrust::negate<int>(),
                       thrust::identity<int>());
  CHECK(is(to, {7, -20, -30, 7}));
  CHECK(thrust::copy_if(from.begin(), from.end(), stencil.begin(), to.begin(),
                        thrust::identity<int>()) -
            to.begin() ==
        2);
  CHECK(is(to, {20, 30, -30, 7}));
  CHECK(thrust::remove_if(from.begin(), from.end(), stencil.begin(), thrust::identity<int>()) -
            from.begin() ==
        2);
  CHECK(from[0] == 10 && from[1] == 40);
  thrust::tabulate(to.begin(), to.end(), thrust::square<int>());
  CHECK(is(to, {0, 1, 4, 9}));
}

void by_key() {
  Numbers keys{1, 1, 2, 2, 2, 5}, values{1, 2, 3, 4, 5, 6}, out(6);
  thrust::inclusive_scan_by_key(keys.begin(), keys.end(), values.begin(), out.begin());
  CHECK(is(out, {1, 3, 3, 7, 12, 6}));
  thrust::exclusive_scan_by_key(keys.begin(), keys.end(), values.begin(), out.begin(), 10);
  CHECK(is(out, {10, 11, 10, 13, 17, 10}));
  thrust::transform_inclusive_scan(values.begin(), values.end(), out.begin(), thrust::negate<int>(),
                                   thrust::plus<int>());
  CHECK(is(out, {-1, -3, -6, -10, -15, -21}));
  thrust::transform_exclusive_scan(values.begin(), values.end(), out.begin(), thrust::negate<int>(),
                                   4, thrust::plus<int>());
  CHECK(is(out, {4, 3, 1, -2, -6, -11}));
  CHECK(thrust::unique_copy(keys.begin(), keys.end(), out.begin()) - out.begin() == 3);
  CHECK(out[0] == 1 && out[1] == 2 && out[2] == 5);
  thrust::device_vector<int> firsts(3);
  const auto copied = thrust::unique_by_key_copy(keys.begin(), keys.end(), values.begin(),
                                                 out.begin(), firsts.begin());
  CHECK(copied.first - out.begin() == 3 && is(firsts, {1, 3, 6}));
  CHECK(thrust::raw_pointer_cast(&firsts[1]) == thrust::raw_pointer_cast(firsts.data()) + 1);
  const auto ends = thrust::unique_by_key(keys.begin(), keys.end(), values.begin());
  CHECK(ends.first - keys.begin() == 3 && values[1] == 3 && values[2] == 6);
}

void raw_memory() {
  try {
    const thrust::device_ptr<void> bytes = thrust::device_malloc(4 * sizeof(int));
    const thrust::device_ptr<int> numbers(static_cast<int*>(bytes.get()));
    thrust::tabulate(numbers, numbers + 4, thrust::negate<int>());
    CHECK(thrust::reduce(numbers, numbers + 4) == -6);
    thrust::device_free(bytes);
  } catch (const thrust::system_error& error) {
    CHECK(error.what() == nullptr);
  }
}

void orders() {
  Numbers a{1, 3, 3, 5, 8}, b{2, 3, 5, 9}, out(9);
  CHECK(is(out, {1, 2, 3, 3, 3, 5, 5, 8, 9},
           thrust::merge(a.begin(), a.end(), b.begin(), b.end(), out.begin()) - out.begin()));
  CHECK(is(out, {1, 2, 3, 3, 5, 8, 9},
           thrust::set_union(a.begin(), a.end(), b.begin(), b.end(), out.begin()) - out.begin()));
  CHECK(is(
      out, {3, 5},
      thrust::set_intersection(a.begin(), a.end(), b.begin(), b.end(), out.begin()) - out.begin()));
  CHECK(is(
      out, {1, 3, 8},
      thrust::set_difference(a.begin(), a.end(), b.begin(), b.end(), out.begin()) - out.begin()));
  CHECK(is(out, {1, 2, 3, 8, 9},
           thrust::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), out.begin()) -
               out.begin()));
  thrust::reverse(a.begin(), a.end());
  CHECK(is(a, {8, 5, 3, 3, 1}));
  thrust::swap_ranges(a.begin(), a.begin() + 2, b.begin());
  CHECK(is(a, {2, 3, 3, 3, 1}) && is(b, {8, 5, 5, 9}));
  Numbers mixed{1, 2, 3, 4, 5, 6, 7};
  CHECK(thrust::stable_partition(mixed.begin(), mixed.end(), Even()) - mixed.begin() == 3);
  CHECK(is(mixed, {2, 4, 6, 1, 3, 5, 7}));
  CHECK(thrust::remove(mixed.begin(), mixed.end(), 1) - mixed.begin() == 6 && mixed[3] == 3);
  thrust::fill_n(mixed.begin(), 2, 9);
  CHECK(*thrust::copy_n(mixed.begin(), 2, mixed.begin() + 2) == 5 && mixed[3] == 9);
}

int main() {
  searches();
  by_stencil();
  by_key();
  raw_memory();
  orders();
  return ok();
}
