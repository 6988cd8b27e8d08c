// SPDX-License-Identifier: Apache-2.0
// Thrust's iterators over several ranges, in another order, over what is not there; placeholders.
#include <thrust/complex.h>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/for_each.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/reverse_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/tuple.h>
#include <thrust/zip_function.h>

#include "check.cuh"

struct Fused {
  template <class Tuple>
  __host__ __device__ void operator()(Tuple t) const {
    thrust::get<2>(t) = thrust::get<0>(t) * thrust::get<1>(t);
  }
};
struct Smaller {
  __host__ __device__ bool operator()(const thrust::tuple<int, int>& a,
                                      const thrust::tuple<int, int>& b) const {
    return thrust::get<0>(a) < thrust::get<0>(b);
  }
};
struct Extent {  // (least, largest) of both
  __host__ __device__ thrust::tuple<int, int> operator()(const thrust::tuple<int, int>& a,
                                                         const thrust::tuple<int, int>& b) const {
    return thrust::make_tuple(thrust::min(thrust::get<0>(a), thrust::get<0>(b)),
                              thrust::max(thrust::get<1>(a), thrust::get<1>(b)));
  }
};
struct Every {
  int by;
  __host__ __device__ int operator()(int i) const { return i * by; }
};
struct Halved {
  __host__ __device__ int operator()(int v) const { return v / 2; }
};
struct Weighted {
  __host__ __device__ int operator()(int a, int b) const { return 10 * a + b; }
};

int main() {
  const int n = 100;
  thrust::device_vector<int> a(n), b(n, 3), c(n);
  thrust::sequence(a.begin(), a.end());
  const auto zipped =
      thrust::make_zip_iterator(thrust::make_tuple(a.begin(), b.begin(), c.begin()));
  const auto behind = thrust::make_zip_iterator(thrust::make_tuple(a.end(), b.end(), c.end()));
  CHECK(behind - zipped == n && zipped + n == behind);
  thrust::for_each(zipped, behind, Fused());
  CHECK(c[0] == 0 && c[7] == 21 && c[n - 1] == 3 * (n - 1));
  const thrust::tuple<int, int, int> seventh = zipped[7];
  CHECK(thrust::get<0>(seventh) == 7 && thrust::get<2>(seventh) == 21);

  // Sorted as pairs: by the first, largest key last.
  thrust::transform(a.begin(), a.end(), a.begin(), (thrust::placeholders::_1 * 37 + 5) % n);
  thrust::sequence(b.begin(), b.end());
  const auto pairs = thrust::make_zip_iterator(a.begin(), b.begin());
  thrust::sort(pairs, pairs + n, Smaller());
  for (int i = 0; i < n; ++i) CHECK(a[i] == i && (b[i] * 37 + 5) % n == i);
  const auto twice = thrust::make_zip_iterator(b.begin(), b.begin());
  const auto extent = thrust::reduce(twice, twice + n, thrust::make_tuple(n, -1), Extent());
  CHECK(thrust::get<0>(extent) == 0 && thrust::get<1>(extent) == n - 1);
  thrust::transform(pairs, pairs + n, c.begin(), thrust::make_zip_function(Weighted()));
  CHECK(c[4] == 40 + b[4]);

  // Every fifth, as indices that are computed; and a range backwards.
  const auto fifths = thrust::make_permutation_iterator(
      a.begin(), thrust::make_transform_iterator(thrust::counting_iterator<int>(0), Every{5}));
  CHECK(thrust::reduce(fifths, fifths + n / 5) == 5 * 19 * 20 / 2);
  thrust::device_vector<int> order{3, 1, 2, 0};
  const auto chosen = thrust::make_permutation_iterator(c.begin(), order.begin());
  const auto chosen_end = thrust::make_permutation_iterator(c.begin(), order.end());
  CHECK(chosen_end - chosen == 4);
  thrust::copy(a.begin() + 10, a.begin() + 14, chosen);
  CHECK(c[3] == 10 && c[1] == 11 && c[2] == 12 && c[0] == 13 && *chosen == 10);
  thrust::copy(thrust::make_reverse_iterator(a.end()), thrust::make_reverse_iterator(a.begin()),
               c.begin());
  CHECK(c[0] == n - 1 && c[n - 1] == 0);
  thrust::copy(a.begin(), a.end(), thrust::make_transform_output_iterator(c.begin(), Halved()));
  CHECK(c[9] == 4 && c[n - 1] == (n - 1) / 2);

  // Sums of groups whose keys nobody wants; both ends of an iterator that computes.
  const auto key = thrust::make_transform_iterator(thrust::counting_iterator<int>(0), Halved());
  const auto key_end = thrust::make_transform_iterator(thrust::counting_iterator<int>(n), Halved());
  const auto ends = thrust::reduce_by_key(key, key_end, thrust::constant_iterator<int>(4),
                                          thrust::make_discard_iterator(), c.begin());
  CHECK(ends.second - c.begin() == n / 2 && c[0] == 8 && c[n / 2 - 1] == 8);
  CHECK(thrust::counting_iterator<int>(4) != thrust::counting_iterator<int>(5));

  using thrust::placeholders::_1;
  using thrust::placeholders::_2;
  thrust::device_vector<float> x(8, 2.0f), y(8, 1.0f);
  thrust::transform(x.begin(), x.end(), y.begin(), y.begin(), 3.0f * _1 + _2);
  CHECK(y[5] == 7);
  CHECK(thrust::count_if(y.begin(), y.end(), _1 > 6 && _1 < 8) == 8);

  thrust::device_vector<thrust::complex<float>> z(4, thrust::complex<float>(3, 4));
  thrust::transform(z.begin(), z.end(), x.begin(),
                    [] __device__(thrust::complex<float> v) { return thrust::abs(v * v); });
  CHECK(x[3] == 25);
  return ok();
}
