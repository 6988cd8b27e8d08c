// SPDX-License-Identifier: Apache-2.0
// Votes, ballots, matches and integer reductions of a warp, partly filled too.
#include "check.cuh"

__global__ void vote(unsigned* out) {
  const int t = threadIdx.x;
  const unsigned all = blockDim.x >= 32 ? 0xffffffffu : (1u << blockDim.x) - 1;
  out[0 * 32 + t] = __ballot_sync(all, t % 3 == 0);
  out[1 * 32 + t] = __any_sync(all, t == 4) && !__any_sync(all, t == 99);
  out[2 * 32 + t] = __all_sync(all, t < 99) && !__all_sync(all, t != 4);
  out[3 * 32 + t] = __match_any_sync(all, t / 5);
  int predicate = 0;
  out[4 * 32 + t] = __match_all_sync(all, 7, &predicate);
  if (!predicate) out[4 * 32 + t] = 0;
  out[5 * 32 + t] =
      __reduce_add_sync(all, t) + __reduce_max_sync(all, -t) + __reduce_min_sync(all, t - 3);
  out[6 * 32 + t] = __reduce_or_sync(all, 1u << t) == all && __reduce_and_sync(all, 0xf0u | t) != 0;
  unsigned half = 0;
  if (t < 8) half = __ballot_sync(0xffu, t & 1);
  out[7 * 32 + t] = half;
}

int main() {
  for (int n : {32, 17}) {
    Array<unsigned> out(8 * 32);
    vote<<<1, n>>>(out.device);
    out.down();
    const unsigned all = n == 32 ? 0xffffffffu : (1u << n) - 1;
    for (int t = 0; t < n; ++t) {
      CHECK(out[t] == (0x49249249u & all));
      CHECK(out[32 + t] == 1 && out[64 + t] == 1);
      CHECK(out[96 + t] == ((0x1fu << t / 5 * 5) & all));
      CHECK(out[128 + t] == all);
      CHECK(static_cast<int>(out[160 + t]) == n * (n - 1) / 2 + 0 - 3);
      CHECK(out[192 + t] == 1);
      CHECK(out[224 + t] == (t < 8 ? 0xaau : 0u));
    }
  }
  return ok();
}
